// long
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { codeOf } from '../../server/test/testkit/authenticator.ts'
import { confirmTotp, startTotp } from '../../server/users/second-factor.service.ts'
import { type Books, openBooks } from './books.ts'
import { startAffiliate } from './run-affiliate.ts'
import type { Typed } from './run-in-pty.ts'

const PASSWORD = 'a long passphrase'
/** Commands go by the clock on the wall. */
const WALL = { now: () => Date.now() }
const SECRET = /^ {2}((?:[A-Z2-7]{4} ){7}[A-Z2-7]{4})$/m
const PRODUCTION = {
  NODE_ENV: 'production',
  PUBLIC_BASE_URL: 'https://market.example.pk',
  PROCESSOR: 'http',
  PROCESSOR_URL: 'https://processor.example',
  PROCESSOR_API_KEY: 'a key',
  PROCESSOR_WEBHOOK_SECRETS: 'whsec_AAAA',
}

const it = suite("second factors by the operator's commands")
let books: Books

it.before(async () => {
  books = await openBooks('sqlite')
  await addAdmin('op@example.pk')
})
it.after(() => books.market.close())

async function addAdmin(email: string, environment: Record<string, string> = {}): Promise<string> {
  const args = ['users', 'create-admin', email, '--password-stdin']
  const made = await books.affiliate(args, environment, PASSWORD)
  assert.is(made.code, 0, made.stderr)
  return made.stdout
}

const audits = async (action: string) =>
  books.market.platform.database.reader
    .selectFrom('audit_entries')
    .select(['actor', 'reason'])
    .where('action', '=', action)
    .execute()

it('are set up with a code of the secret that is shown', async () => {
  const { settings, market } = books
  const running = startAffiliate(['users', 'enroll-second-factor', 'op@example.pk'], {
    environment: { ...PRODUCTION, ...settings },
    folder: market.bed.testDatabase.folder,
  })
  const { child, printed } = running
  const answer = (code: string) => child.stdin.write(`${code}\n`)
  await running.until(() => /app shows: $/.test(printed.stderr))
  const secret = SECRET.exec(printed.stderr)?.[1]?.replaceAll(' ', '') ?? ''
  assert.match(printed.stderr, `otpauth://totp/market.example.pk:op%40example.pk?secret=${secret}&issuer=`)
  answer('000000')
  await running.until(() => /not the current code[\s\S]*app shows: $/.test(printed.stderr))
  answer(codeOf(secret, WALL))
  child.stdin.end()
  assert.is((await running.ended).code, 0, printed.stderr)
  assert.match(printed.stdout, /^The second factor of op@example\.pk is on\.$/m)
  assert.is(printed.stdout.match(/^ {2}[A-Z2-7]{4}(-[A-Z2-7]{4}){3}$/gm)?.length, 10)
  assert.not.match(printed.stdout, secret)
  assert.equal(await audits('user.enable_second_factor'), [{ actor: 'operator', reason: null }])
  const again = await books.affiliate(['users', 'enroll-second-factor', 'op@example.pk'])
  assert.is(again.code, 1)
  assert.match(again.stderr, /The second factor is on/)
})

it('are off without a code', async () => {
  await addAdmin('none@example.pk')
  const ended = await books.affiliate(['users', 'enroll-second-factor', 'none@example.pk'])
  assert.is(ended.code, 1)
  assert.match(ended.stderr, /No code was given; the second factor is off/)
})

it('are for admins only, since others set up their own', async () => {
  const { code, stderr } = await books.affiliate(['users', 'enroll-second-factor', books.creatorId])
  assert.is(code, 1)
  assert.match(stderr, /is not an admin/)
})

it('are removed with a reason, after a question', async () => {
  const { platform } = books.market
  const { creatorId } = books
  const { secret } = await startTotp(platform, creatorId)
  await confirmTotp(platform, creatorId, codeOf(secret, platform.clock), creatorId)
  const reset = ['users', 'reset-second-factor', creatorId]
  assert.is((await books.affiliate(reset)).code, 2)
  assert.is((await books.affiliate([...reset, '--reason', ' ', '--yes'])).code, 2)
  const words = [...reset, '--reason', 'lost the phone']
  const unasked = await books.affiliate(words)
  assert.equal([unasked.code, unasked.stderr], [1, 'affiliate: Not a terminal; confirm with --yes.\n'])
  assert.is((await books.json(...words, '--yes')).changed, true)
  assert.is((await books.json(...words)).changed, false)
  assert.equal(await audits('user.reset_second_factor'), [{ actor: 'operator', reason: 'lost the phone' }])
})

it('are named by a script that makes an admin in production', async () => {
  const printed = await addAdmin('scripted@example.pk', PRODUCTION)
  assert.match(printed, /affiliate users enroll-second-factor scripted@example\.pk/)
})

it('are set up when an admin is made at a terminal in production', async () => {
  const typed: Typed[] = [
    { after: /Password: /, keys: `${PASSWORD}\n` },
    { after: /Password again: /, keys: `${PASSWORD}\n` },
    { after: /Code that the app shows: /, keys: '\u0004' },
  ]
  const { screen, code } = await books.type(['users', 'create-admin', 'typed@example.pk'], {
    typed,
    environment: PRODUCTION,
  })
  assert.is(code, 1, screen)
  assert.match(screen, /typed@example\.pk is an admin now/)
  assert.match(screen.replaceAll(/\s+/g, ' '), /The account is there; to set up its second factor, run/)
})

it.run()
