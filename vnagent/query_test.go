package vnagent

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuery(t *testing.T) {
	cases := map[string]struct {
		call        call
		asked, want string
	}{
		"all of a log": {
			callLogs, "follow=true&previous=true&timestamps=true&sinceSeconds=3&tailLines=4&limitBytes=5&stream=Stdout&sinceTime=2026-01-02T03:04:05Z",
			"container=app&follow=true&previous=true&timestamps=true&sinceSeconds=3&tailLines=4&limitBytes=5&stream=Stdout&sinceTime=2026-01-02T03:04:05Z",
		},
		"another container, and no proof of who the node is": {
			callLogs, "container=other&insecureSkipTLSVerifyBackend=true&unknown=1&follow=", "container=app&follow=",
		},
		"a terminal": {
			callExec, "input=1&output=1&error=1&tty=1&command=sh&command=-c&command=a%20%26%20b%2F..",
			"stdin=true&stdout=true&stderr=true&tty=true&container=app&command=sh&command=-c&command=a%20%26%20b%2F..",
		},
		"nothing of the apiserver's names": {callExec, "stdin=true&stdout=true&container=other&input=true&command=id", "container=app&command=id"},
		"attach":                           {callAttach, "output=1&error=1&command=id", "stdout=true&stderr=true&container=app"},
		"port-forward":                     {callPortForward, "container=app", ""},
		"several ports":                    {callPortForward, "port=80,443&port=8080", "ports=80&ports=443&ports=8080"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := target{call: tc.call, namespace: "shop", pod: "web", container: "app"}.query(parseQuery(t, tc.asked))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parseQuery(t, tc.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestQueryRefuses(t *testing.T) {
	for _, asked := range []string{"port=http", "port=0", "port=65536", "port=-1", "port=80,,81"} {
		if got, err := (target{call: callPortForward, pod: "web"}).query(parseQuery(t, asked)); err == nil {
			t.Errorf("%s is taken for %+v", asked, got)
		}
	}
}

func parseQuery(t *testing.T, text string) url.Values {
	t.Helper()
	query, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	return query
}
