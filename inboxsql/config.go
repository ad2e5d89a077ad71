package inboxsql

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/watermill-inbox/inbox"
)

// Defaults of [Config].
const (
	DefaultTable       = "inbox_messages"
	DefaultWait        = 10 * time.Second
	DefaultConnTimeout = time.Minute
)

// Config tunes a [Store]. The zero value of each field is its default.
type Config struct {
	// Dialect is the SQL spoken by the database. Empty: found by the driver, which is
	// never [PostgresRotating].
	Dialect Dialect

	// Table is the name of the table, or schema.table; ASCII letters, digits and
	// underscores. It is quoted, so letter case counts. Name the schema if handlers
	// change the search path. Empty: [DefaultTable].
	Table string

	// Namespace separates services that share one table: letters, digits, and
	// the characters . _ -. It becomes a part of the consumer's name. Changing it
	// forgets all keys. Empty: none.
	Namespace string

	// Window is for how long keys are remembered: a message that is delivered again
	// later is processed again. It must be longer than any redelivery may take. The
	// keys go when a retention.Cleaner removes them, [inbox.ClockSkew] after their
	// window; without one they stay. Zero: [inbox.DefaultWindow]. Negative: for
	// ever. With [PostgresRotating] keys go together, by the longest of all windows.
	Window time.Duration

	// Windows are those of single consumers, by their names without the namespace.
	// Zero and negative mean what they do for Window.
	Windows map[string]time.Duration

	// MaxRedeliveryAge declares how long after a message was sent it may still be
	// delivered: the retention of the topic or queue, or how far back dead letters
	// are replayed. New refuses a window that is shorter. Zero: not declared.
	MaxRedeliveryAge time.Duration

	// Wait bounds, in total over all retries, how long a delivery waits for the
	// fate of another one of the same key, or for a busy database. It does not
	// reach the handler's statements. Zero: [DefaultWait]. Negative: do not wait. A
	// day is the most.
	//
	// MySQL and MariaDB count in whole seconds, rounded up. On MySQL 8 a wait that
	// is longer than innodb_lock_wait_timeout is made of several, and one that is
	// shorter ends by closing the connection.
	Wait time.Duration

	// ConnTimeout bounds how long a delivery waits for a free connection of the
	// pool. Zero: [DefaultConnTimeout]. Negative: no bound but the context.
	ConnTimeout time.Duration

	// TxOptions are those of each transaction. ReadOnly is refused. Nil: the
	// database's default. READ COMMITTED has the fewest conflicts, and is all that
	// [PostgresRotating] takes and its default.
	TxOptions *sql.TxOptions

	// Deliveries declares how many deliveries run at the same time, summed over
	// all handlers that use this pool: one for each subscriber that hands out
	// messages one by one. [Store.Check] compares the pool with it. Zero: not
	// declared, not compared.
	Deliveries int
}

func (c Config) withDefaults() Config {
	if c.Table == "" {
		c.Table = DefaultTable
	}
	c.Windows = maps.Clone(c.Windows)
	if c.Window == 0 {
		c.Window = inbox.DefaultWindow
	}
	if c.Wait == 0 {
		c.Wait = DefaultWait
	}
	if c.ConnTimeout == 0 {
		c.ConnTimeout = DefaultConnTimeout
	}
	return c
}

var (
	tableName     = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,59}\.)?[A-Za-z_][A-Za-z0-9_]{0,49}$`)
	namespaceName = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)
)

func (c Config) validate() error {
	var errs []error
	if !tableName.MatchString(c.Table) {
		errs = append(errs, fmt.Errorf("Config.Table %q is not a name or schema.name of at most 50 ASCII letters, digits and underscores", c.Table))
	}
	if !namespaceName.MatchString(c.Namespace) {
		errs = append(errs, fmt.Errorf("Config.Namespace %q has other characters than letters, digits and . _ -, or more than 64", c.Namespace))
	}
	if c.TxOptions != nil && c.TxOptions.ReadOnly {
		errs = append(errs, errors.New("Config.TxOptions is read-only, but each delivery writes its key"))
	}
	if c.Wait > 24*time.Hour {
		errs = append(errs, fmt.Errorf("Config.Wait is %s, more than a day", c.Wait))
	}
	errs = append(errs, c.validateWindows()...)
	if c.Deliveries < 0 {
		errs = append(errs, fmt.Errorf("Config.Deliveries is %d", c.Deliveries))
	}
	return errors.Join(errs...)
}
