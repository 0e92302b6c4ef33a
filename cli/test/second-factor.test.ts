// long
import * as assert from 'uvu/assert'
import { codeOf } from '../../server/test/testkit/authenticator.ts'
import { columnsOf } from '../../server/test/testkit/rows.ts'
import { confirmTotp, startTotp } from '../../server/users/second-factor.service.ts'
import { suiteOverBooks } from './books.ts'
import { PRODUCTION } from './run-affiliate.ts'
import { runHere, type Typed } from './run-here.ts'

const PASSWORD = 'a long passphrase'
/** Commands go by the clock on the wall. */
const WALL = { now: () => Date.now() }
const SECRET = /^ {2}((?:[A-Z2-7]{4} ){7}[A-Z2-7]{4})$/m
const { it, books } = suiteOverBooks("second factors by the operator's commands")
it.before(async () => {
  await addAdmin('op@example.pk')
})

async function addAdmin(email: string, environment: Record<string, string> = {}): Promise<string> {
  const args = ['users', 'create-admin', email, '--password-stdin']
  const made = await books.affiliate(args, environment, PASSWORD)
  assert.is(made.code, 0, made.stderr)
  return made.stdout
}

const audits = async (action: string) =>
  columnsOf(books.market.platform, 'audit_entries', ['actor', 'reason'], { action })

it('are set up with a code of the secret that is shown', async () => {
  const enroll = ['users', 'enroll-second-factor', 'op@example.pk']
  const secretIn = (text: string) => SECRET.exec(text)?.[1]?.replaceAll(' ', '') ?? ''
  const answer = ({ stderr }: { stderr: string }) => {
    if (!/app shows: $/.test(stderr)) return undefined
    return /not the current code/.test(stderr) ? `${codeOf(secretIn(stderr), WALL)}\n` : '000000\n'
  }
  const production = { ...PRODUCTION, ...books.settings }
  const { code, stdout, stderr } = await runHere(enroll, production, { answer })
  assert.is(code, 0, stderr)
  const secret = secretIn(stderr)
  assert.match(stderr, `otpauth://totp/Affiliate%20marketplace:op%40example.pk?secret=${secret}&issuer=`)
  assert.match(stdout, /^The second factor of op@example\.pk is on\.$/m)
  assert.is(stdout.match(/^ {2}[A-Z2-7]{4}(-[A-Z2-7]{4}){3}$/gm)?.length, 10)
  assert.not.match(stdout, secret)
  assert.equal(await audits('user.enable_second_factor'), [{ actor: 'operator', reason: null }])
  await books.refuses(enroll, /The second factor is on/)
})

it('are off without a code, and for admins only, since others set up their own', async () => {
  await addAdmin('none@example.pk')
  const off = /No code was given; the second factor is off/
  await books.refuses(['users', 'enroll-second-factor', 'none@example.pk'], off)
  await books.refuses(['users', 'enroll-second-factor', books.creatorId], /is not an admin/)
})

it('are removed with a reason, after a question', async () => {
  const { platform } = books.market
  const { creatorId } = books
  const { secret } = await startTotp(platform, creatorId)
  await confirmTotp(platform, creatorId, codeOf(secret, platform.clock), creatorId)
  const reset = ['users', 'reset-second-factor', creatorId]
  await books.refuses(reset, /required option '--reason <text>'/, 2)
  await books.refuses([...reset, '--reason', ' ', '--yes'], /--reason must be one line/, 2)
  const words = [...reset, '--reason', 'lost the phone']
  assert.is((await books.json(...words, '--yes')).changed, true)
  assert.is((await books.json(...words)).changed, false)
  assert.equal(await audits('user.reset_second_factor'), [{ actor: 'operator', reason: 'lost the phone' }])
})

it('are named when an admin is made in production, and set up at a terminal', async () => {
  const printed = await addAdmin('scripted@example.pk', PRODUCTION)
  assert.match(printed, /affiliate users enroll-second-factor scripted@example\.pk/)
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
