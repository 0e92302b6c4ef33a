import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addressProblem,
  databaseNameOf,
  hostAddresses,
  hostsOf,
  withDatabaseName,
  withoutPassword,
} from './postgres-address.ts'

const it = suite('PostgreSQL addresses')

it('makes one address for each host', () => {
  assert.equal(
    hostAddresses('postgres://u:p@a:5432,b:5433/db?target_session_attrs=read-write&sslmode=require'),
    ['postgres://u:p@a:5432/db?sslmode=require', 'postgres://u:p@b:5433/db?sslmode=require'],
  )
  assert.equal(hostAddresses('postgresql://a,[::1]:6000/db?sslmode=require&target_session_attrs=primary'), [
    'postgresql://a/db?sslmode=require',
    'postgresql://[::1]:6000/db?sslmode=require',
  ])
  assert.equal(hostAddresses('postgres://u:p@host/db?target_session_attrs=primary'), [
    'postgres://u:p@host/db',
  ])
  assert.equal(hostAddresses('postgres://u@/db?host=/run/postgresql'), [
    'postgres://u@/db?host=/run/postgresql',
  ])
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

it('says what is wrong with an address', () => {
  for (const fine of [
    'postgres://a:5432,b:5432/db?target_session_attrs=read-write',
    'postgres://u:p@a/db?target_session_attrs=primary',
    'postgres://u@/db?host=/run/postgresql',
    'postgres:///db',
  ]) {
    assert.is(addressProblem(fine), null, fine)
  }
  for (const [address, words] of [
    [
      'postgres://a,b/db?target_session_attrs=any',
      'target_session_attrs=any: it must be read-write or primary',
    ],
    ['postgres://a/db?target_session_attrs=', 'it must be read-write or primary'],
    ['postgres://a,,b/db', 'names an empty host'],
    ['postgres://u@/db?host=a,b', 'lists its hosts in "host="'],
    ['postgres://a:x,b/db', 'must be sqlite:PATH'],
  ] as const) {
    assert.match(addressProblem(address) ?? 'nothing', words, address)
  }
})

it.run()
