// database: none
// own process
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { emailAddress } from '../../shared/schemas/users.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { hashPassword, passwordMatches } from './passwords.ts'
import { createToken, hashOfToken } from './sessions.service.ts'

test('matches the password that was hashed, however it is typed', async () => {
  const hashed = await hashPassword('caf\u00e9 caf\u00e9 caf\u00e9')
  assert.match(hashed, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  assert.ok(await passwordMatches('cafe\u0301 cafe\u0301 cafe\u0301', hashed))
  assert.not.ok(await passwordMatches('cafe cafe cafe', hashed))
  assert.is.not(await hashPassword('the same'), await hashPassword('the same'))
})

test('does the same work for an account that does not exist', async () => {
  const hashed = await hashPassword('a long passphrase')
  assert.is(await passwordMatches('a long passphrase', undefined), false)
  const workOf = async (known: string | undefined) => {
    const before = process.cpuUsage()
    await passwordMatches('another passphrase', known)
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  // Processor time, µs. Without the hash it would be hundreds of times less.
  const [known, unknown] = [await workOf(hashed), await workOf(undefined)]
  assert.ok(unknown > known / 10 && known > unknown / 10, `${known} µs and ${unknown} µs`)
})

test('bounds how many wait, and refuses the rest at once', async () => {
  const results = await Promise.allSettled(
    Array.from({ length: 110 }, (_, index) => hashPassword(`${index}`)),
  )
  const refused = results.filter((result) => result.status === 'rejected')
  assert.is(refused.length, 8, 'two run, a hundred wait')
  assert.ok(refused.every(({ reason }) => reason instanceof Refusal && reason.code === 'unavailable'))
  assert.ok(await passwordMatches('x', await hashPassword('x')), 'and goes on')
})

test('finds a token by its hash, and takes nothing else for one', () => {
  const { token, hash } = createToken()
  assert.is(hashOfToken(token), hash)
  assert.match(hash, /^[0-9a-f]{64}$/)
  for (const text of ['', 'x', `${token}=`, ` ${token}`, token.slice(1), `${token.slice(1)}é`]) {
    assert.is(hashOfToken(text), null)
  }
})

test('checks even hostile e-mail addresses in little CPU time', () => {
  const before = process.threadCpuUsage()
  for (const text of [
    'a'.repeat(100_000),
    'a.'.repeat(50_000),
    `a@${'a.'.repeat(50_000)}`,
    `a@${'-'.repeat(100_000)}`,
  ]) {
    assert.not.ok(emailAddress.safeParse(text).success)
  }
  const { user, system } = process.threadCpuUsage(before)
  // Usually 5 ms. One that takes quadratic time takes minutes.
  assert.ok(user + system < 2_000_000, `${user + system} µs`)
})

test.run()
