// database: none
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readSettings } from '../../server/read-settings.ts'
import { pluckAll } from '../../server/test/testkit/pluck.ts'
import { runHere, typeHere } from './run-here.ts'

let folder: string
let file: string
const it = suite('affiliate init')
it.before.each(() => {
  folder = mkdtempSync(join(tmpdir(), 'affiliate-init-'))
  file = join(folder, 'affiliate.env')
})
it.after.each(() => rmSync(folder, { recursive: true, force: true }))

const SECRET = `whsec_${Buffer.alloc(24, 5).toString('base64')}`
const HTTP = {
  PROCESSOR_URL: 'https://api.bank.pk/v1',
  PROCESSOR_API_KEY: 'k3y with #, $HOME and "quotes"',
  PROCESSOR_WEBHOOK_SECRETS: SECRET,
}
const FLAGS = [
  ...['--domain', 'partners.chenab.pk', '--database-url', 'sqlite:/srv/affiliate.db'],
  ...['--smtp-url', 'smtps://u:p%40@mail.chenab.pk', '--mail-from', "Chenab's <no-reply@chenab.pk>"],
  ...['--processor', 'http'],
]
/** `APP_KEY` of the test's own environment is not taken over. */
const init = (args: readonly string[], environment: Record<string, string> = {}) =>
  runHere(['init', ...args], { APP_KEY: '', ...environment }, { folder })
const written = () => parseEnv(readFileSync(file, 'utf8')) as Record<string, string>

it('without a terminal takes all from options and the environment, and makes the keys', async () => {
  const { code, stdout, stderr } = await init(FLAGS, HTTP)
  assert.is(code, 0, stderr)
  const said = /^Wrote .*\/affiliate\.env, which only this user can read\.\nKeep a copy of its APP_KEY/
  assert.match(stdout, said)
  assert.is(statSync(file).mode & 0o777, 0o600)
  const values = written()
  const { APP_KEY = '', METRICS_TOKEN = '', ...rest } = values
  assert.equal(rest, {
    NODE_ENV: 'production',
    PUBLIC_BASE_URL: 'https://partners.chenab.pk',
    TRUST_PROXY: 'loopback',
    DATABASE_URL: 'sqlite:/srv/affiliate.db',
    SMTP_URL: 'smtps://u:p%40@mail.chenab.pk',
    MAIL_FROM: "Chenab's <no-reply@chenab.pk>",
    PROCESSOR: 'http',
    ...HTTP,
  })
  assert.equal([Buffer.from(APP_KEY, 'base64').length, METRICS_TOKEN.length], [32, 48])
  assert.is(readSettings(values).NODE_ENV, 'production')
  assert.not.match(stdout + stderr, new RegExp(`${APP_KEY.slice(0, 20)}|k3y`))
})

it('never writes over a file', async () => {
  writeFileSync(file, 'PORT=1\n')
  const { code, stderr } = await init(FLAGS, HTTP)
  assert.equal([code, readFileSync(file, 'utf8')], [1, 'PORT=1\n'])
  assert.match(stderr, /^affiliate: .*\/affiliate\.env exists already\. Edit it, or name another file/)
  assert.is((await init([...FLAGS, '--file', 'other.env'], HTTP)).code, 0)
  assert.equal(readdirSync(folder).sort(), ['affiliate.env', 'other.env'])
  const nowhere = await init([...FLAGS, '--file', 'none/other.env'], HTTP)
  assert.match(nowhere.stderr, /^affiliate: .*none\/other\.env cannot be written: ENOENT[^\n]*\n$/)
})

it('without a terminal names at once what is missing, and what is wrong', async () => {
  const nothing = await init([])
  assert.is(nothing.code, 2)
  assert.is(nothing.stderr, 'affiliate: Not a terminal; pass --domain, --smtp-url, --processor.\n')
  const some = await init(['--domain', 'a.pk', '--smtp-url', 'smtp://m.pk', '--processor', 'http'])
  const names = Object.keys(HTTP).join(', ')
  const missing = `Not a terminal; pass --mail-from, and set ${names} in the environment.`
  assert.is(some.stderr, `affiliate: ${missing}\n`)
  const wrong = { ...HTTP, PROCESSOR_URL: 'http://api.bank.pk', PROCESSOR_API_KEY: 'replace' }
  const faulty = await init([...FLAGS, '--domain', 'partners.example.com', '--json'], wrong)
  const { code, issues } = JSON.parse(faulty.stderr) as { code: string; issues: { path: string }[] }
  assert.equal([faulty.code, code], [2, 'validation_failed'])
  const paths = issues.map(({ path }) => path)
  assert.equal(paths.sort(), ['PROCESSOR_API_KEY', 'PROCESSOR_URL', 'PUBLIC_BASE_URL'])
  const sandbox = await init([...FLAGS, '--processor', 'sandbox'])
  assert.match(sandbox.stderr, /^affiliate: One setting is invalid; nothing was written\.\n {2}PROCESSOR: /)
  assert.not.ok(existsSync(file))
})

it('makes the secret of events that only the commands of this machine sign', async () => {
  const instructions = 'Transfer to PK36SCBL0000001123456702, with the number of the invoice.\\nThank you.'
  const flags = ['--domain', 'partners.chenab.pk', '--smtp-url', 'off', '--processor', 'manual']
  const missing = await init(flags)
  assert.match(missing.stderr, /Not a terminal; set MANUAL_PAYMENT_INSTRUCTIONS in the environment\.\n$/)
  const { code, stderr } = await init(flags, { MANUAL_PAYMENT_INSTRUCTIONS: instructions })
  assert.is(code, 0, stderr)
  const values = written()
  assert.is(values.MANUAL_PAYMENT_INSTRUCTIONS, instructions)
  assert.match(values.PROCESSOR_WEBHOOK_SECRETS ?? '', /^whsec_[A-Za-z0-9+/]{32}$/)
  assert.is(readSettings(values).PROCESSOR, 'manual')
})

it('at a terminal asks, says all that is wrong together, and asks for that again', async () => {
  const answer = (after: RegExp, text: string) => ({ after, keys: `${text}\n` })
  const ended = await typeHere(['init'], {
    folder,
    columns: 80,
    environment: { APP_KEY: '' },
    typed: [
      answer(/Domain of .*: /, 'partners.example.com'),
      answer(/Database, .*: /, 'sqlite:./data/affiliate.db'),
      answer(/Mail server, .*: /, 'smtps://mail.chenab.pk'),
      answer(/Sender of mails, .*: /, 'no address'),
      answer(/Payment processor, .*: /, 'http'),
      answer(/PROCESSOR_URL: .*: /, 'https://api.bank.pk/v1'),
      answer(/PROCESSOR_API_KEY: .*: /, 'replace'),
      answer(/PROCESSOR_WEBHOOK_SECRETS: .*: /, SECRET),
      // All faults at once.
      answer(
        /PUBLIC_BASE_URL: names partners\.example\.com(.|\n)*PROCESSOR_API_KEY: still holds(.|\n)*MAIL_FROM: must be(.|\n)*Domain of .*: /,
        'https://partners.chenab.pk/',
      ),
      answer(/Sender of mails, .*: /, 'no-reply@chenab.pk'),
      answer(/PROCESSOR_API_KEY: .*: /, 'a-real-key'),
    ],
  })
  assert.is(ended.code, 0, ended.screen)
  const settings = pluckAll([written()], 'PUBLIC_BASE_URL', 'MAIL_FROM', 'PROCESSOR_API_KEY')
  assert.equal(settings, [['https://partners.chenab.pk', 'no-reply@chenab.pk', 'a-real-key']])
  const canceled = await typeHere(['init', '--file', 'other.env'], {
    folder,
    typed: [{ after: /Domain of .*: /, keys: '\u0004' }],
  })
  assert.is(canceled.code, 1, canceled.screen)
  assert.equal(readdirSync(folder), ['affiliate.env'])
})

it.run()
