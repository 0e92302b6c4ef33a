import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addressProblem,
  databaseNameOf,
  hostAddresses,
  hostsOf,
  passwordOf,
  withDatabaseName,
  withoutPassword,
} from './postgres-address.ts'

const it = suite('PostgreSQL addresses')

it('makes one address for each host', () => {
  const two = 'postgres://u:p@a:5432,b:5433/db?target_session_attrs=read-write&sslmode=require'
  const verified = (...hosts: string[]) => hosts.map((host) => `${host}/db?sslmode=verify-full`)
  assert.equal(hostAddresses(two), verified('postgres://u:p@a:5432', 'postgres://u:p@b:5433'))
  const other = 'postgresql://a,[::1]:6000/db?sslmode=require&target_session_attrs=primary'
  assert.equal(hostAddresses(other), verified('postgresql://a', 'postgresql://[::1]:6000'))
  const local = 'postgres://u@/db?host=/run/postgresql'
  assert.equal(hostAddresses(local), [local])
  assert.equal(hostAddresses('postgres://u:p@h/db?target_session_attrs=primary'), ['postgres://u:p@h/db'])
})

it('names hosts, database and another database, and hides the password', () => {
  const url = 'postgres://u:p%40x@a:5432,b/db?target_session_attrs=primary'
  assert.is(hostsOf(url), 'a:5432, b')
  assert.is(hostsOf('postgres://u@/db'), 'a local socket')
  assert.is(databaseNameOf(url), 'db')
  assert.is(databaseNameOf('postgres://u:p@a,b'), 'u')
  assert.is(withDatabaseName(url, 'o/x'), 'postgres://u:p%40x@a:5432,b/o%2Fx?target_session_attrs=primary')
  assert.is(withDatabaseName('postgres://u@a,b?sslmode=require', 'x'), 'postgres://u@a,b/x?sslmode=require')
  assert.is(withoutPassword(url), 'postgres://u@a:5432,b/db?target_session_attrs=primary')
  assert.is(withoutPassword('postgres://a:5432,b/db'), 'postgres://a:5432,b/db')
})

it('keeps the read-only option of commands behind all options that an address gives', () => {
  const given = '-c search_path=shop -c default_transaction_read_only=off'
  const url = `postgres://u@a/db?options=${encodeURIComponent(given)}`
  const [address = ''] = hostAddresses(url, { readOnly: true })
  const options = new URL(address).searchParams.getAll('options')
  assert.equal(options, [`${given} -c default_transaction_read_only=on`])
  assert.equal(hostAddresses('postgres://u@a,b/db', { readOnly: true }).length, 2)
  const unverified = 'postgres://u@a/db?sslmode=no-verify'
  assert.equal(hostAddresses(`${unverified}&sslrootcert=system&channel_binding=require`), [unverified])
})

it('shows no password, wherever the address has it', () => {
  for (const [address, shown, password] of [
    ['postgres://u:se%40cret@a/db', 'postgres://u@a/db', 'se@cret'],
    ['postgres://u:se@cret@a/db', 'postgres://u@a/db', 'se@cret'],
    ['postgres://u:se:cret@a,b/db', 'postgres://u@a,b/db', 'se:cret'],
    ['postgres://u@a/db?password=secret', 'postgres://u@a/db', 'secret'],
    ['postgres://u@a/d?port=1&pass%77ord=secret&host=a', 'postgres://u@a/d?port=1&host=a', 'secret'],
    ['postgres://:secret@/db?host=/run/postgresql', 'postgres://@/db?host=/run/postgresql', 'secret'],
    ['postgres://a/db', 'postgres://a/db', ''],
  ] as const) {
    assert.is(addressProblem(address), null, address)
    assert.is(withoutPassword(address), shown)
    assert.is(passwordOf(address), password)
    assert.not.match(hostsOf(address), /se.?cret/)
  }
})

it('says what is wrong with an address, and no part of its password', () => {
  for (const fine of [
    'postgres://a:5432,b:5432/db?target_session_attrs=read-write',
    'postgres://u:p@a/db?target_session_attrs=primary',
    'postgres://u@/db?host=/run/postgresql',
    'postgres:///db',
    'postgres://u@a/db?sslmode=verify-full&sslrootcert=system&channel_binding=require&application_name=shop',
  ]) {
    assert.is(addressProblem(fine), null, fine)
  }
  for (const [address, words] of [
    ['postgres://a,b/db?target_session_attrs=any', 'must have target_session_attrs=read-write or primary'],
    ['postgres://a/db?target_session_attrs=', 'must have target_session_attrs=read-write or primary'],
    ['postgres://a,,b/db', 'names an empty host'],
    ['postgres://u@/db?host=a,b', 'lists its hosts in "host="'],
    ['postgres://a:x,b/db', 'must be sqlite:PATH'],
    ['postgres://a/db?sslmod=require', 'unknown option sslmod. Did you mean sslmode? Known are host,'],
    ['postgres://a/db?pgbouncer=true', 'unknown option pgbouncer. Known are'],
    ['postgres://a/db?ssl=true', 'unknown option ssl; write sslmode=require'],
    ['postgres://a/db?sslmode=prefer', 'one of these as sslmode: disable, require'],
    ['postgres://a/db?sslmode=disable&sslmode=require', 'gives the option sslmode twice'],
    ['postgres://a/db?sslrootcert=/none.crt', 'sslrootcert that cannot be read: /none.crt (ENOENT)'],
    ['postgres://a/db?sslrootcert=/etc/passwd', 'a file without PEM as sslrootcert: /etc/passwd'],
    ['postgres://a/db?options=-c%20a%3Db%5C', 'must not have a backslash'],
  ] as const) {
    assert.match(addressProblem(address) ?? 'nothing', words, address)
  }
  const passwords = ['se@cret/w', 'secret/w', '12/secret', '1?secret=1&x', '1#secret', 'secret%', 'secret%ff']
  const inUser = passwords.map((password) => `postgres://u:${password}@a/db`)
  const inOption = ['x&secret', 'x&secret=y', 'x#secret'].map((text) => `postgres://u@a/db?password=${text}`)
  for (const address of [...inUser, ...inOption]) {
    const problem = addressProblem(address) ?? 'nothing'
    assert.match(problem, 'must be percent-encoded', address)
    assert.not.match(problem, 'secret')
  }
})

it.run()
