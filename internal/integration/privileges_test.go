package integration_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/watermill-inbox/inbox"
	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/sqltest"
	"github.com/watermill-inbox/inbox/testutil"
)

// TestLeastPrivileges runs the store suite with the rights that docs/databases.md
// names, and no other.
func TestLeastPrivileges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		database reach
		role     func(t *testing.T) *role
		grants   []string
	}{
		"a service on PostgreSQL":             {throughPgx, postgresRole, []string{"PostgreSQL"}},
		"a service on two generations":        {rotatingThroughPgx, postgresRole, []string{"PostgreSQL, two generations"}},
		"a service on MariaDB":                {onMariaDB, mariadbRole, []string{"MariaDB, MySQL"}},
		"a service that cleans on PostgreSQL": {throughPgx, postgresRole, []string{"PostgreSQL", "PostgreSQL, cleaner"}},
		"a service that cleans on MariaDB":    {onMariaDB, mariadbRole, []string{"MariaDB, MySQL", "MariaDB, MySQL, cleaner"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := c.database(t)
			place.Admit = c.role(t).admit(statements(t, c.grants)...)
			if len(c.grants) == 1 {
				lacks := map[testutil.Ability]string{testutil.CanSweep: "this role has no right to"}
				maps.Copy(lacks, place.Lacks)
				place.Lacks = lacks
			}
			testutil.RunStoreTests(t, place.Harness())
		})
	}
}

// TestEachPrivilegeIsNeeded takes each right away, and looks what fails then.
func TestEachPrivilegeIsNeeded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		database reach
		role     func(t *testing.T) *role
		grants   []string // the right is taken from the last one
		needs    map[string][]string
	}{
		"a service on PostgreSQL": {throughPgx, postgresRole, []string{"PostgreSQL"}, map[string][]string{
			"SELECT":                    {"a first delivery", "a duplicate", "a record", "a lookup", "a forget", "taking back"},
			"INSERT":                    {"a first delivery", "a duplicate", "a record", "a forget", "taking back"},
			"UPDATE (result, produced)": {"a record"},
			"DELETE":                    {"a forget", "taking back"},
		}},
		"a service on two generations": {rotatingThroughPgx, postgresRole, []string{"PostgreSQL, two generations"}, map[string][]string{
			"SELECT":                    {"a first delivery", "a duplicate", "a record", "a lookup", "a forget", "taking back"},
			"INSERT":                    {"a first delivery", "a duplicate", "a record", "a forget", "taking back"},
			"UPDATE (result, produced)": {"a record"},
			"DELETE":                    {"a forget", "taking back"},
		}},
		"a service on MariaDB": {onMariaDB, mariadbRole, []string{"MariaDB, MySQL"}, map[string][]string{
			"SELECT":                    {"a duplicate", "a record", "a lookup", "a forget", "taking back"},
			"INSERT":                    {"a first delivery", "a duplicate", "a record", "a forget", "taking back"},
			"UPDATE (result, produced)": {"a record"},
			"DELETE":                    {"a forget", "taking back"},
		}},
		"a cleaner on PostgreSQL": {throughPgx, postgresRole, []string{"PostgreSQL, cleaner"}, map[string][]string{
			"SELECT":                            {"a sweep"},
			"INSERT":                            {"a sweep"},
			"UPDATE (event_type, processed_at)": {"a sweep"},
			"DELETE":                            {"a sweep"},
		}},
		"a cleaner on MariaDB": {onMariaDB, mariadbRole, []string{"MariaDB, MySQL, cleaner"}, map[string][]string{
			"SELECT":                            {"a sweep"},
			"INSERT":                            {"a sweep"},
			"UPDATE (event_type, processed_at)": {"a sweep"},
			"DELETE":                            {"a sweep"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			granted := statements(t, c.grants)
			what, on, _ := strings.Cut(strings.TrimPrefix(granted[len(granted)-1], "GRANT "), " ON ")
			privileges := split(what)
			if want := slices.Sorted(maps.Keys(c.needs)); !slices.Equal(slices.Sorted(slices.Values(privileges)), want) {
				t.Errorf("the page grants %q, and this test knows %q", privileges, want)
			}
			for _, p := range append(privileges, "") {
				t.Run("without "+p, func(t *testing.T) {
					t.Parallel()
					var tables *sqltest.Tables
					r := c.role(t)
					place := c.database(t)
					place.Admit = func(t *testing.T, made *sqltest.Tables) func() *sql.DB {
						t.Helper()
						tables = made
						return r.admit(granted...)(t, made)
					}
					in := place.Harness().Open(t, testutil.Options{})
					owner := inboxsql.MustNew(tables.DB, &inboxsql.Config{Table: tables.Inbox, Dialect: place.Dialect})
					known(t, owner, in)
					if p != "" {
						r.exec(strings.Replace(r.on(tables.Inbox, "REVOKE "+p+" ON "+on), " TO ", " FROM ", 1))
					}
					doings := ofService(owner)
					if strings.Contains(c.grants[0], "cleaner") {
						doings = ofCleaner()
					}
					if got, want := refused(t, in, doings), slices.Sorted(slices.Values(c.needs[p])); !slices.Equal(got, want) {
						t.Errorf("refused are %q, want %q", got, want)
					}
				})
			}
		})
	}
}

// doing is something that needs rights. It returns the error, if any.
type doing func(ctx context.Context, s *inboxsql.Store) error

func ofService(owner *inboxsql.Store) map[string]doing {
	once := func(ctx context.Context, s *inboxsql.Store, id string, e inbox.Effect) error {
		_, _, err := s.Once(ctx, d(id), func(context.Context) (inbox.Effect, error) { return e, nil })
		return err
	}
	return map[string]doing{
		"a first delivery": func(ctx context.Context, s *inboxsql.Store) error { return once(ctx, s, "new", inbox.Effect{}) },
		"a duplicate":      func(ctx context.Context, s *inboxsql.Store) error { return once(ctx, s, "known", inbox.Effect{}) },
		"a record": func(ctx context.Context, s *inboxsql.Store) error {
			return once(ctx, s, "new with a record", inbox.Effect{Record: []byte("record")})
		},
		"a lookup": func(ctx context.Context, s *inboxsql.Store) error {
			_, _, err := s.Lookup(ctx, d("known").Key)
			return err
		},
		"a forget": func(ctx context.Context, s *inboxsql.Store) error {
			_, _, err := s.Forget(ctx, d("to forget").Key)
			return err
		},
		"a check": func(ctx context.Context, s *inboxsql.Store) error {
			findings, err := s.Check(ctx)
			for _, f := range findings {
				if f.Fatal {
					err = errors.Join(err, errors.New(f.String()))
				}
			}
			return err
		},
		"taking back": func(ctx context.Context, s *inboxsql.Store) error {
			_, _, err := s.Once(ctx, d("ended"), func(ctx context.Context) (inbox.Effect, error) {
				return inbox.Effect{}, cmp.Or(inbox.MustTx[*sql.Tx](ctx).Commit(), errGivenUp)
			})
			if noRight(err) {
				return err
			}
			if _, found, failed := owner.Lookup(ctx, d("ended").Key); failed != nil || found || !errors.Is(err, errGivenUp) {
				return errors.Join(err, failed)
			}
			return nil
		},
	}
}

func ofCleaner() map[string]doing {
	return map[string]doing{
		"a sweep": func(ctx context.Context, s *inboxsql.Store) error {
			swept, err := s.Sweep(ctx, inbox.Batch{Owner: "cleaner", Limit: 10})
			if err == nil && swept.Removed != 1 {
				err = errors.New("one key was to be removed")
			}
			return err
		},
	}
}

var errGivenUp = errors.New("the handler gives up")

// refused are those doings that a right is missing for.
func refused(t *testing.T, in *testutil.Instance, doings map[string]doing) []string {
	t.Helper()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(doings)) {
		err := doings[name](t.Context(), sqlStore(t, in.Again()))
		switch {
		case err == nil:
		case noRight(err):
			names = append(names, name)
		default:
			t.Errorf("%s: %v", name, err)
		}
	}
	return names
}

func noRight(err error) bool {
	if onPostgres, ok := errors.AsType[*pgconn.PgError](err); ok {
		return onPostgres.Code == "42501"
	}
	onMariaDB, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains([]uint16{1142, 1143}, onMariaDB.Number)
}

// known stores keys as who made the tables: one to find, one to forget, one to sweep.
func known(t *testing.T, owner *inboxsql.Store, in *testutil.Instance) {
	t.Helper()
	for _, id := range []string{"known", "to forget", "old"} {
		if _, _, err := owner.Once(t.Context(), d(id), func(context.Context) (inbox.Effect, error) { return inbox.Effect{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	in.Age(d("old").Key, 365*24*time.Hour)
}

func statements(t *testing.T, titles []string) []string {
	t.Helper()
	all := make([]string, 0, len(titles))
	for _, title := range titles {
		all = append(all, grant(t, title))
	}
	return all
}

// split cuts a list of privileges at the commas that are not between brackets.
func split(list string) (privileges []string) {
	depth, from := 0, 0
	for i, r := range list + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			privileges = append(privileges, strings.TrimSpace(list[from:i]))
			from = i + 1
		}
	}
	return privileges
}
