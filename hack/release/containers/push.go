package containers

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push uploads the image of an archive to the program's repository in a
// registry, with the credentials of docker's and podman's configuration files. It
// returns the reference with the digest.
func Push(ctx context.Context, registry, file string) (string, error) {
	archived, err := Read(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = archived.Close() }() // it is in the system's directory for temporary files
	tag, err := name.NewTag(strings.TrimSuffix(registry, "/")+"/"+archived.Program+":"+archived.Tag, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("push %s to %q: %w; name the registry with its domain, as in registry.example.com/team",
			archived.Program, registry, err)
	}
	if err := remote.WriteIndex(tag, archived.Index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push %s: %w; docker login or podman login writes credentials", tag, err)
	}
	digest, err := archived.Index.Digest()
	if err != nil {
		return "", err
	}
	return tag.String() + "@" + digest.String(), nil
}
