package convert

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
)

// writeDocument writes a response.
func writeDocument(w http.ResponseWriter, r *http.Request, code int, object document.Object) error {
	data, err := document.Write(object)
	if err != nil {
		return err
	}
	reply := newReply(w, r, code)
	_, _ = reply.Write(data)
	reply.close()
	return nil
}

// writeStream writes a response while it is converted. What goes wrong after the
// beginning was written breaks the connection, so that the client notices.
func writeStream(w http.ResponseWriter, r *http.Request, response *http.Response, converter *document.Response) error {
	reply := newReply(w, r, response.StatusCode)
	err := converter.Stream(reply, response.Body)
	if err != nil && reply.began {
		panic(http.ErrAbortHandler) //nolint:forbidigo // by which net/http breaks the connection
	}
	reply.close()
	return err
}

// minCompressed is the size of a first write from which a response is compressed,
// in bytes: as an apiserver, the gateway leaves small responses as they are.
const minCompressed = document.Chunk

var compressors = sync.Pool{New: func() any {
	compressor, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	return compressor
}}

// reply writes a document, after its headers.
type reply struct {
	http.ResponseWriter

	code       int
	accepts    bool
	began      bool
	compressor *gzip.Writer
}

func newReply(w http.ResponseWriter, r *http.Request, code int) *reply {
	return &reply{ResponseWriter: w, code: code, accepts: strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")}
}

// Write implements io.Writer.
func (r *reply) Write(data []byte) (int, error) {
	if !r.began {
		r.begin(r.accepts && len(data) >= minCompressed)
	}
	if r.compressor != nil {
		return r.compressor.Write(data)
	}
	return r.ResponseWriter.Write(data) //nolint:gosec // JSON, of the type that the header says
}

func (r *reply) begin(compressed bool) {
	r.began = true
	r.Header().Set("Content-Type", jsonType)
	r.Header().Set("Cache-Control", "no-cache, private")
	if compressed {
		r.Header().Set("Content-Encoding", "gzip")
		r.Header().Add("Vary", "Accept-Encoding")
		r.compressor = compressors.Get().(*gzip.Writer)
		r.compressor.Reset(r.ResponseWriter)
	}
	r.WriteHeader(r.code)
}

// close writes what is left.
func (r *reply) close() {
	if r.compressor != nil {
		_ = r.compressor.Close() // the client is gone
		compressors.Put(r.compressor)
	}
}
