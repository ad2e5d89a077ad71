package delivery_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/watermill-inbox/inbox/internal/delivery"
)

func TestState(t *testing.T) {
	t.Parallel()

	t.Run("keeps the latest result and reason", func(t *testing.T) {
		t.Parallel()
		s := &delivery.State{}
		s.SetResult([]byte("first"))
		s.SetResult([]byte("second"))
		s.SetDiscard("too old")
		s.SetDiscard("revoked")
		if result, discard, _ := s.Take(); string(result) != "second" || discard != "revoked" {
			t.Errorf("got %q, %q", result, discard)
		}
	})

	t.Run("returns what is to be published in the order it came", func(t *testing.T) {
		t.Parallel()
		s := &delivery.State{}
		s.Keep("a")
		s.Keep("b")
		if _, _, got := s.Take(); !slices.Equal(got, []any{"a", "b"}) {
			t.Errorf("got %v", got)
		}
	})

	t.Run("takes nothing that comes after the handler has returned", func(t *testing.T) {
		t.Parallel()
		s := &delivery.State{}
		s.Take()
		if s.SetResult([]byte("late")) || s.SetDiscard("late") || s.Keep("late") {
			t.Error("it was accepted")
		}
		if result, discard, kept := s.Take(); result != nil || discard != "" || kept != nil {
			t.Errorf("got %q, %q, %v", result, discard, kept)
		}
	})

	t.Run("ends once and for all", func(t *testing.T) {
		t.Parallel()
		s := &delivery.State{}
		if s.Ended() {
			t.Fatal("a new state has ended")
		}
		s.End()
		s.End()
		if !s.Ended() {
			t.Error("the state has not ended")
		}
	})

	t.Run("can be used by several goroutines", func(t *testing.T) {
		t.Parallel()
		const n = 16
		s := &delivery.State{}
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				s.SetResult([]byte("result"))
				s.SetDiscard("reason")
				s.Keep(i)
				s.Ended()
				s.End()
			})
		}
		wg.Wait()
		if _, _, kept := s.Take(); len(kept) != n {
			t.Errorf("%d of %d were kept", len(kept), n)
		}
	})
}

func TestSlot(t *testing.T) {
	t.Parallel()

	t.Run("is empty without a delivery", func(t *testing.T) {
		t.Parallel()
		if s, handles := delivery.FromContext(t.Context()), delivery.Handles(t.Context()); s != nil || handles != nil {
			t.Errorf("got %v, %v", s, handles)
		}
	})

	t.Run("collects the handles, the latest last", func(t *testing.T) {
		t.Parallel()
		s := &delivery.State{}
		first := delivery.WithHandles(delivery.NewContext(t.Context(), s), []any{"a", "b"})
		second := delivery.WithHandles(first, []any{"c"})
		if got := delivery.Handles(second); !slices.Equal(got, []any{"a", "b", "c"}) {
			t.Errorf("got %v", got)
		}
		if got := delivery.FromContext(second); got != s {
			t.Errorf("got the state %p, want %p", got, s)
		}
	})

	t.Run("does not change for those who hold an earlier context", func(t *testing.T) {
		t.Parallel()
		base := delivery.WithHandles(t.Context(), []any{"a"})
		one, other := delivery.WithHandles(base, []any{"b"}), delivery.WithHandles(base, []any{"c"})
		for _, c := range []struct {
			ctx  context.Context //nolint:containedctx // the case
			want []any
		}{{base, []any{"a"}}, {one, []any{"a", "b"}}, {other, []any{"a", "c"}}} {
			if got := delivery.Handles(c.ctx); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		}
	})

	t.Run("of a new delivery hides that of an enclosing one", func(t *testing.T) {
		t.Parallel()
		outer := delivery.WithHandles(delivery.NewContext(t.Context(), &delivery.State{}), []any{"a"})
		inner := delivery.NewContext(outer, nil)
		if s, handles := delivery.FromContext(inner), delivery.Handles(inner); s != nil || len(handles) > 0 {
			t.Errorf("got %v, %v", s, handles)
		}
	})
}

func TestGrace(t *testing.T) {
	t.Parallel()
	if d, ok := delivery.Grace(t.Context()); ok {
		t.Errorf("a context without a grace period has %s", d)
	}
	for _, want := range []time.Duration{-1, 0, time.Minute} {
		if d, ok := delivery.Grace(delivery.WithGrace(t.Context(), want)); !ok || d != want {
			t.Errorf("got %s, %v, want %s", d, ok, want)
		}
	}
}
