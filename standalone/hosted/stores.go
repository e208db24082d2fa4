package hosted

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const (
	storeDir = "etcd"
	// tenantsDir is the directory of the tenants' etcd, if it is not the super
	// cluster's.
	tenantsDir = "etcd-tenants"
	// sharedMark is a file in it that exists while both stores have the records
	// of all control planes.
	sharedMark = "shared"
)

// stores has the etcds of a host: one for all control planes, or one for the
// super cluster and one for all others, so that tenants that fill or slow down
// theirs do not affect the super cluster.
type stores struct {
	superName string
	super     *store
	tenants   *store
}

// startStores starts the etcds, or connects to a remote one. It first splits the directory of a single etcd:
// each etcd starts with a copy, which keeps revisions and leases.
func startStores(ctx context.Context, opts Options) (*stores, error) {
	s := &stores{superName: opts.Super}
	if opts.Store != nil {
		remote, err := connectStore(ctx, *opts.Store, opts.Log)
		s.super, s.tenants = remote, remote
		return s, err
	}
	dir := filepath.Join(opts.Dir, storeDir)
	var err error
	if opts.Super == "" {
		if s.tenants, err = startStore(ctx, dir, opts); err != nil {
			return nil, err
		}
		s.super = s.tenants
		return s, nil
	}
	apart := filepath.Join(opts.Dir, tenantsDir)
	if err := copyStore(dir, apart); err != nil {
		return nil, err
	}
	if s.super, err = startStore(ctx, dir, opts); err != nil {
		return nil, err
	}
	if s.tenants, err = startStore(ctx, apart, opts); err != nil {
		return nil, errors.Join(err, s.super.stop())
	}
	if err := s.finishSplit(ctx, filepath.Join(apart, sharedMark)); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// copyStore copies an etcd's directory unless there is a copy. The copy has a
// mark until both have been cleaned up.
func copyStore(from, to string) error {
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return wrapf(err, "find the tenants' store")
	}
	if _, err := os.Stat(filepath.Join(from, dataDir)); errors.Is(err, fs.ErrNotExist) {
		return nil // a new host
	}
	if err := checkUnused(filepath.Join(from, dataDir)); err != nil {
		return err
	}
	unfinished := to + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove an unfinished copy: %w", err)
	}
	if err := os.CopyFS(filepath.Join(unfinished, dataDir), os.DirFS(filepath.Join(from, dataDir))); err != nil {
		return fmt.Errorf("copy etcd's data for the tenants: %w", err)
	}
	if err := os.Chmod(filepath.Join(unfinished, dataDir), 0o700); err != nil { //nolint:gosec // a directory
		return fmt.Errorf("copy etcd's data for the tenants: %w", err)
	}
	if err := writeFile(filepath.Join(unfinished, sharedMark), nil); err != nil {
		return err
	}
	return wrapf(os.Rename(unfinished, to), "copy etcd's data for the tenants")
}

// finishSplit deletes from each store the records that belong to the other one.
func (s *stores) finishSplit(ctx context.Context, mark string) error {
	if _, err := os.Stat(mark); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	own := keyspace.Prefix(s.superName) + "/"
	if _, err := s.tenants.client.Delete(ctx, own, clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("delete the super cluster's records from the tenants' store: %w", err)
	}
	for begin, end := range map[string]string{
		keyspace.Root: own, clientv3.GetPrefixRangeEnd(own): clientv3.GetPrefixRangeEnd(keyspace.Root),
	} {
		if _, err := s.super.client.Delete(ctx, begin, clientv3.WithRange(end)); err != nil {
			return fmt.Errorf("delete the tenants' records from the super cluster's store: %w", err)
		}
	}
	return wrapf(os.Remove(mark), "remove the mark of a copied store")
}

// of returns the store of a control plane.
func (s *stores) of(name string) *store {
	if name == s.superName {
		return s.super
	}
	return s.tenants
}

func (s *stores) all() []*store {
	if s.super == s.tenants {
		return []*store{s.tenants}
	}
	return []*store{s.super, s.tenants}
}

// run keeps all stores usable until ctx ends or one of them fails.
func (s *stores) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(s.all()))
	var running sync.WaitGroup
	for _, each := range s.all() {
		running.Go(func() { ended <- each.run(ctx) })
	}
	err := <-ended
	cancel()
	running.Wait()
	return err
}

func (s *stores) stop() error {
	all := s.all()
	errs := make([]error, 0, len(all))
	for _, each := range all {
		errs = append(errs, each.stop())
	}
	return errors.Join(errs...)
}
