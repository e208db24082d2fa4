package convert

import (
	"context"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/virtualcluster/virtualcluster/gateway/convert/compiled"
	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	own "github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

const (
	jsonType = "application/json"
	// mostElements is the number of elements of an object in protobuf: one of two
	// bytes may take 2 kB when it is decoded, and as much again in a document.
	mostElements = 50_000
)

// body is what is sent to the super cluster, in JSON.
type body struct {
	data      []byte
	mediaType string
}

// mediaTypeOf returns the format of the body of a request.
func mediaTypeOf(r *http.Request) (string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return jsonType, nil
	}
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil {
		return "", unsupported(header)
	}
	return mediaType, nil
}

// body converts the body of a request.
func (c *call) body(w http.ResponseWriter, r *http.Request) (body, error) {
	if c.info.Verb == verbGet || c.isMany() {
		return body{}, nil
	}
	mediaType, data, err := readBody(w, r)
	if err != nil || len(data) == 0 {
		return body{}, err
	}
	if c.info.Verb == verbPatch {
		return c.patch(r.Context(), mediaType, data)
	}
	object, err := c.parse(mediaType, data)
	if err == nil {
		err = c.confirmClass(r.Context(), object)
	}
	if err != nil {
		return body{}, err
	}
	data, err = c.down(object)
	return body{data, jsonType}, err
}

// readBody returns the body of a request, and its format. In protobuf it refuses
// what would cost too much to decode: the decoder takes all types there, whatever
// was asked for, and has no limit, which documents in text have.
func readBody(w http.ResponseWriter, r *http.Request) (mediaType string, data []byte, err error) {
	data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, document.MaxBytes))
	if err != nil || len(data) == 0 {
		return "", nil, err
	}
	mediaType, err = mediaTypeOf(r)
	if err == nil && mediaType == runtime.ContentTypeProtobuf {
		err = checkProtobuf(data)
	}
	return mediaType, data, err
}

// checkProtobuf returns why an object in protobuf may not be decoded.
func checkProtobuf(data []byte) error {
	elements, err := decodedTypes.Check(data, schema.GroupVersionKind{})
	if err == nil && elements > mostElements {
		err = nesting.TooMany(elements, mostElements)
	}
	return err
}

// patch converts a patch.
func (c *call) patch(ctx context.Context, mediaType string, data []byte) (body, error) {
	switch types.PatchType(mediaType) {
	case types.JSONPatchType:
		if c.kind.IsCRD() { // the super cluster decodes what the patch makes of it
			if err := nesting.CheckPatch(data, document.MaxDepth, document.MaxDepth); err != nil {
				return body{}, err
			}
		}
		converted, err := document.JSONPatchDown(c.namer, c.fields(), data)
		if err != nil {
			return body{}, c.invalid(err)
		}
		if compiled.IsDevices(c.kind) { // the super cluster compiles what the patch makes of it
			if err := compiled.CheckPatch(converted); err != nil {
				return body{}, apierrors.NewForbidden(c.kind.GroupResource(), c.name, err)
			}
		}
		return body{converted, mediaType}, nil
	case types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType:
		format := jsonType
		if mediaType == string(types.ApplyYAMLPatchType) {
			format = runtime.ContentTypeYAML
		}
		object, err := c.parse(format, data)
		if err == nil {
			err = c.confirmClass(ctx, object)
		}
		if err != nil {
			return body{}, err
		}
		data, err := c.down(object)
		return body{data, mediaType}, err
	case types.ApplyCBORPatchType:
	}
	return body{}, unsupported(mediaType)
}

// parse parses a document in a format that is served.
func (c *call) parse(mediaType string, data []byte) (document.Object, error) {
	var object document.Object
	var err error
	switch mediaType {
	case jsonType:
		object, err = document.Parse(data)
	case runtime.ContentTypeYAML:
		if data, err = yaml.YAMLToJSONStrict(data); err == nil {
			object, err = document.Parse(data)
		}
	case runtime.ContentTypeProtobuf:
		object, err = parseProtobuf(data)
	default:
		return nil, unsupported(mediaType)
	}
	if err != nil {
		return nil, badRequest(c.strictly(err, data))
	}
	return object, nil
}

// strictly adds to an error about fields that occur twice those that the type does
// not have, as an apiserver reports them together.
func (c *call) strictly(err error, data []byte) error {
	typed, missing := scheme.Scheme.New(schema.GroupVersionKind{Group: c.info.APIGroup, Version: c.info.APIVersion, Kind: c.kind.Kind})
	if missing != nil || !runtime.IsStrictDecodingError(err) {
		return err
	}
	if all, failed := kjson.UnmarshalStrict(data, typed); failed == nil && len(all) > 0 {
		return runtime.NewStrictDecodingError(all)
	}
	return err
}

// typed has the types of native kinds and CRDs.
var typed = func() *runtime.Scheme {
	types := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(types))
	utilruntime.Must(apiextensionsv1.AddToScheme(types))
	return types
}()

// protobuf decodes them: others have no such format.
var (
	protobuf     = serializer.NewCodecFactory(typed).UniversalDeserializer()
	decodedTypes = nesting.TypesOf(typed)
)

// parseProtobuf parses an object in protobuf.
func parseProtobuf(data []byte) (document.Object, error) {
	object, _, err := protobuf.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode the document: %w", err)
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

// down converts a document.
func (c *call) down(object document.Object) ([]byte, error) {
	if c.makesNamespace() {
		nameObject(object)
	}
	if c.kind.IsStored() {
		document.DropNulls(object)
	}
	tenant := nameOf(object)
	if c.isPlatforms(tenant) {
		return nil, apierrors.NewForbidden(c.kind.GroupResource(), tenant, errPlatforms)
	}
	if c.kind.IsCRD() && c.info.Subresource == "" {
		if err := c.hook(object); err != nil {
			return nil, err
		}
	}
	if err := compiled.Check(c.kind, object); err != nil {
		return nil, apierrors.NewForbidden(c.kind.GroupResource(), tenant, err)
	}
	if err := document.Down(c.namer, c.fields(), object); err != nil {
		return nil, c.invalid(err)
	}
	c.given, c.givenStored = tenant, nameOf(object)
	if err := c.stamp(object, tenant); err != nil {
		return nil, c.invalid(err)
	}
	return document.Write(object)
}

// stamp adds the platform's labels and annotations to a Namespace or CRD of the
// tenant.
func (c *call) stamp(object document.Object, tenant string) error {
	switch {
	case c.kind.IsCRD() && (c.applies || c.info.Verb == verbCreate):
		return document.Stamp(object, map[string]string{own.Converted: c.Tenant}, nil)
	case tenant == "" || !c.makesNamespace():
		return nil
	}
	labels, annotations := map[string]string{own.Converted: c.Tenant}, map[string]string{own.Namespace: tenant}
	maps.Copy(labels, c.Labels)
	maps.Copy(annotations, c.Annotations)
	if c.isEvaluated() {
		labels[own.AdmissionLabel] = ""
	}
	return document.Stamp(object, labels, annotations)
}

// fields returns the rules of the documents of the request.
func (c *call) fields() *kinds.Field {
	if c.info.Verb == verbDelete || c.info.Verb == verbDeleteCollection {
		return kinds.Deletion
	}
	return c.kind.FieldsOf(c.info.Subresource)
}

// nameObject gives an object that asks for a name one: the super cluster stores
// it under another.
func nameObject(object document.Object) {
	metadata, _ := object["metadata"].(document.Object)
	base, _ := metadata["generateName"].(string)
	if name, _ := metadata["name"].(string); name == "" && base != "" {
		metadata["name"] = names.SimpleNameGenerator.GenerateName(base)
	}
}

func nameOf(object document.Object) string {
	metadata, _ := object["metadata"].(document.Object)
	name, _ := metadata["name"].(string)
	return name
}
