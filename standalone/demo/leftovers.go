package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const etcdTimeout = 5 * time.Second

// nothingLeft makes sure that nothing of a tenant who was removed is left: no
// namespace in the super cluster, no key in etcd, no file. It looks from
// outside, and does not ask those whose work it was to remove it.
func nothingLeft(ctx context.Context, admin *Admin, dataDir string, tenant *Tenant) error {
	namespaces, err := admin.namespaces(ctx, tenant.Name)
	if err != nil {
		return err
	}
	if len(namespaces) > 0 {
		return fmt.Errorf("namespaces of %s are left in the super cluster: %s", tenant.Name, strings.Join(namespaces, ", "))
	}
	files := filepath.Join(dataDir, "controlplanes", tenant.Namespace)
	if _, err := os.Stat(files); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files of %s are left in %s", tenant.Name, files)
	}
	keys, err := countKeys(ctx, filepath.Join(dataDir, "etcd-tenants", "client.sock"), "/controlplanes/"+tenant.Namespace+"/")
	if err != nil {
		return err
	}
	if keys > 0 {
		return fmt.Errorf("%d keys of %s are left in etcd", keys, tenant.Name)
	}
	return nil
}

// countKeys counts the keys in etcd with a prefix.
func countKeys(ctx context.Context, socket, prefix string) (_ int64, err error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + socket}, DialTimeout: etcdTimeout, Logger: zap.NewNop()})
	if err != nil {
		return 0, fmt.Errorf("look into etcd: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	got, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("look into etcd: %w", err)
	}
	return got.Count, nil
}
