package brokers_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/watermill-inbox/inbox/inboxsql"
	"github.com/watermill-inbox/inbox/internal/integration/servers"
	"github.com/watermill-inbox/inbox/internal/sqlitetest"
)

// database has the inbox and the effects of one case.
type database struct {
	open    func() *sql.DB // a pool of a process
	watch   *sql.DB        // the pool of the test
	dialect inboxsql.Dialect
	inbox   string
	effects string
}

// newSQLite makes a file of the test's own.
func newSQLite(t *testing.T) *database {
	t.Helper()
	file := filepath.Join(t.TempDir(), "inbox.db")
	d := &database{dialect: inboxsql.SQLite, watch: sqlitetest.OpenFile(t, file, "")}
	d.open = func() *sql.DB {
		db := sqlitetest.OpenFile(t, file, "")
		db.SetMaxOpenConns(4) // there is one writer
		return db
	}
	d.create(t)
	return d
}

// newPostgres makes tables on the server. cut ends all connections but those of the
// test itself.
func newPostgres(t *testing.T) (d *database, cut func()) {
	t.Helper()
	config, err := pgx.ParseConfig(servers.Postgres.Address())
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["synchronous_commit"] = "off" // the server does not crash, and this is faster
	d = &database{dialect: inboxsql.Postgres, watch: pool(t, stdlib.GetConnector(*config))}
	named := config.Copy()
	name := fmt.Sprintf("inbox_%08x", rand.Uint32()) //nolint:gosec // a name, not a secret
	named.RuntimeParams["application_name"] = name
	d.open = func() *sql.DB { return pool(t, stdlib.GetConnector(*named)) }
	d.create(t)
	return d, func() {
		t.Helper()
		const end = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1"
		n := 0
		if err := d.watch.QueryRowContext(t.Context(), end, name).Scan(&n); err != nil || n == 0 {
			t.Fatalf("%d connections are cut: %v", n, err)
		}
	}
}

// newMySQL is [newPostgres] for MySQL and MariaDB.
func newMySQL(t *testing.T) (d *database, cut func()) {
	t.Helper()
	config, err := mysql.ParseDSN(servers.MariaDB.Address())
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = &mysql.NopLogger{} // a connection that is cut is no news
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	// By default a statement waits 50 s for a lock, which is nearly the patience of a test.
	config.Params["innodb_lock_wait_timeout"] = "5"
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	d = &database{dialect: inboxsql.MySQL, watch: pool(t, connector)}
	known := &knownConnections{Connector: connector}
	d.open = func() *sql.DB { return pool(t, known) }
	d.create(t)
	return d, func() {
		t.Helper()
		n := 0
		for _, id := range known.take() {
			_, err := d.watch.ExecContext(t.Context(), fmt.Sprint("KILL ", id))
			var failure *mysql.MySQLError
			switch {
			case err == nil:
				n++
			case errors.As(err, &failure) && failure.Number == 1094: // it is closed
			default:
				t.Fatal(err)
			}
		}
		if n == 0 {
			t.Fatal("no connection is cut")
		}
	}
}

// pool opens a pool that the test closes. It is small, as servers have a limit.
func pool(t *testing.T, connector driver.Connector) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close a pool: %v", err)
		}
	})
	return db
}

// knownConnections knows the connections by the ids that the server gives them. It
// gives no id twice.
type knownConnections struct {
	driver.Connector
	mu  sync.Mutex
	ids []uint64
}

// Connect implements [driver.Connector].
func (k *knownConnections) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	id, err := connectionID(ctx, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ids = append(k.ids, id)
	return conn, nil
}

func connectionID(ctx context.Context, conn driver.Conn) (uint64, error) {
	queryer, ok := conn.(driver.QueryerContext)
	if !ok {
		return 0, fmt.Errorf("no queries through %T", conn)
	}
	rows, err := queryer.QueryContext(ctx, "SELECT CAST(CONNECTION_ID() AS CHAR)", nil)
	if err != nil {
		return 0, err
	}
	value := make([]driver.Value, 1)
	if err := errors.Join(rows.Next(value), rows.Close()); err != nil {
		return 0, err
	}
	return strconv.ParseUint(fmt.Sprintf("%s", value[0]), 10, 64)
}

// take returns the ids of all connections since the last time.
func (k *knownConnections) take() []uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	ids := k.ids
	k.ids = nil
	return ids
}

// create makes the tables, and drops them after the test. The table of effects has
// no constraint that would hide an effect that happens twice.
func (d *database) create(t *testing.T) {
	t.Helper()
	suffix := fmt.Sprintf("_%08x", rand.Uint32()) //nolint:gosec // a name, not a secret
	d.inbox, d.effects = "inbox"+suffix, "effects"+suffix
	t.Cleanup(func() {
		d.exec(t, "DROP TABLE IF EXISTS "+d.inbox)
		d.exec(t, "DROP TABLE IF EXISTS "+d.effects)
	})
	store := inboxsql.MustNew(d.watch, &inboxsql.Config{Dialect: d.dialect, Table: d.inbox})
	if err := store.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.exec(t, "CREATE TABLE "+d.effects+" (consumer VARCHAR(100) NOT NULL, id VARCHAR(100) NOT NULL, seen VARCHAR(1000) NOT NULL)")
}

// store opens the inbox as one process of a service does.
func (d *database) store(namespace string) *inboxsql.Store {
	return inboxsql.MustNew(d.open(), &inboxsql.Config{Dialect: d.dialect, Table: d.inbox, Namespace: namespace})
}

// apply is the effect of a message: what the handler saw of it.
func (d *database) apply(ctx context.Context, tx *sqlx.Tx, consumer, id, seen string) error {
	insert := "INSERT INTO " + d.effects + " (consumer, id, seen) VALUES (?, ?, ?)"
	if d.dialect == inboxsql.Postgres {
		insert = "INSERT INTO " + d.effects + " (consumer, id, seen) VALUES ($1, $2, $3)"
	}
	_, err := tx.ExecContext(ctx, insert, consumer, id, seen)
	return err
}

// effect is what the test finds of a message.
type effect struct {
	times int
	seen  string
}

// committed returns the effects of a consumer by message.
func (d *database) committed(t *testing.T, consumer string) map[string]effect {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	query := "SELECT id, COUNT(*), MAX(seen) FROM " + d.effects + " WHERE consumer = '" + consumer + "' GROUP BY id" //nolint:gosec // our own names
	rows, err := d.watch.QueryContext(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	effects := map[string]effect{}
	for rows.Next() {
		var id string
		var e effect
		if err := rows.Scan(&id, &e.times, &e.seen); err != nil {
			t.Fatal(err)
		}
		effects[id] = e
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return effects
}

// quoted quotes the name of a table.
func (d *database) quoted(name string) string {
	if d.dialect == inboxsql.MySQL {
		return "`" + name + "`"
	}
	return `"` + name + `"`
}

func (d *database) exec(t *testing.T, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := d.watch.ExecContext(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}
