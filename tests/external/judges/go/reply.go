package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
)

// Bytes of one read: smaller than most events with arguments, and no multiple of a line.
const piece = 1000

var errNoAnswer = errors.New("the stream ended without an answer")

// streamed is one line of the manifest: a recorded response, or the address of a server.
type streamed struct {
	Client  string            `json:"client"`
	Name    string            `json:"name"`
	File    string            `json:"file"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	URL     string            `json:"url"`
}

// call has its arguments as text.
type call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Text string `json:"text"`
	// Free reports arguments that are free text and no JSON.
	Free bool `json:"free,omitempty"`
}

type answer struct {
	Text         string `json:"text"`
	Thinking     string `json:"thinking"`
	Calls        []call `json:"calls"`
	Finish       string `json:"finish"`
	InputTokens  *int64 `json:"input_tokens"`
	OutputTokens *int64 `json:"output_tokens"`
}

// replyTransport answers any request with the recorded bytes.
type replyTransport struct {
	one  streamed
	body []byte
}

func transportOf(one streamed) (*http.Client, error) {
	if one.URL != "" {
		server, err := url.Parse(one.URL)
		return &http.Client{Transport: sendingTransport{server, one.Headers}}, err
	}
	body, err := os.ReadFile(one.File)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: replyTransport{one, body}}, nil
}

// RoundTrip implements http.RoundTripper.
func (t replyTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	header := http.Header{}
	for name, value := range t.one.Headers {
		header.Set(name, value)
	}
	return &http.Response{
		StatusCode:    t.one.Status,
		Status:        http.StatusText(t.one.Status),
		Header:        header,
		Body:          io.NopCloser(pieces{bytes.NewReader(t.body)}),
		ContentLength: -1,
		Request:       request,
	}, nil
}

// sendingTransport sends every request to a server, with more headers.
type sendingTransport struct {
	server  *url.URL
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (t sendingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := request.Clone(request.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = t.server.Scheme, t.server.Host, ""
	for name, value := range t.headers {
		sent.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(sent)
}

// pieces gives at most piece bytes at once, so that events are cut at any place.
type pieces struct{ inner io.Reader }

func (p pieces) Read(buffer []byte) (int, error) {
	if len(buffer) > piece {
		buffer = buffer[:piece]
	}
	return p.inner.Read(buffer)
}
