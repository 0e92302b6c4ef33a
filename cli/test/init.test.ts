// database: none
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readSettings } from '../../server/read-settings.ts'
import { runHere, typeHere } from './run-here.ts'

interface Context {
  folder: string
  file: string
}

const it = suite<Context>('affiliate init')
it.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'affiliate-init-'))
  context.file = join(context.folder, 'affiliate.env')
})
it.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }))

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
const init = (folder: string, args: readonly string[], environment: Record<string, string> = {}) =>
  runHere(['init', ...args], { APP_KEY: '', ...environment }, { folder })
const written = (file: string) => parseEnv(readFileSync(file, 'utf8')) as Record<string, string>

it('without a terminal takes all from options and the environment, and makes the keys', async ({
  folder,
  file,
}) => {
  const { code, stdout, stderr } = await init(folder, FLAGS, HTTP)
  assert.is(code, 0, stderr)
  assert.match(
    stdout,
    /^Wrote .*\/affiliate\.env, which only this user can read\.\nKeep a copy of its APP_KEY/,
  )
  assert.is(statSync(file).mode & 0o777, 0o600)
  const values = written(file)
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

it('never writes over a file', async ({ folder, file }) => {
  writeFileSync(file, 'PORT=1\n')
  const { code, stderr } = await init(folder, FLAGS, HTTP)
  assert.equal([code, readFileSync(file, 'utf8')], [1, 'PORT=1\n'])
  assert.match(stderr, /^affiliate: .*\/affiliate\.env exists already\. Edit it, or name another file/)
  assert.is((await init(folder, [...FLAGS, '--file', 'other.env'], HTTP)).code, 0)
  assert.equal(readdirSync(folder).sort(), ['affiliate.env', 'other.env'])
  const nowhere = await init(folder, [...FLAGS, '--file', 'none/other.env'], HTTP)
  assert.match(nowhere.stderr, /^affiliate: .*none\/other\.env cannot be written: ENOENT[^\n]*\n$/)
})

it('without a terminal names at once what is missing, and what is wrong', async ({ folder, file }) => {
  const nothing = await init(folder, [])
  assert.is(nothing.code, 2)
  assert.is(nothing.stderr, 'affiliate: Not a terminal; pass --domain, --smtp-url, --processor.\n')
  const some = await init(folder, ['--domain', 'a.pk', '--smtp-url', 'smtp://m.pk', '--processor', 'http'])
  assert.is(
    some.stderr,
    'affiliate: Not a terminal; pass --mail-from, and set PROCESSOR_URL, PROCESSOR_API_KEY, PROCESSOR_WEBHOOK_SECRETS in the environment.\n',
  )
  const wrong = { ...HTTP, PROCESSOR_URL: 'http://api.bank.pk', PROCESSOR_API_KEY: 'replace' }
  const faulty = await init(folder, [...FLAGS, '--domain', 'partners.example.com', '--json'], wrong)
  const { code, issues } = JSON.parse(faulty.stderr) as { code: string; issues: { path: string }[] }
  assert.equal([faulty.code, code], [2, 'validation_failed'])
  assert.equal(issues.map(({ path }) => path).sort(), [
    'PROCESSOR_API_KEY',
    'PROCESSOR_URL',
    'PUBLIC_BASE_URL',
  ])
  const sandbox = await init(folder, [...FLAGS, '--processor', 'sandbox'])
  assert.match(sandbox.stderr, /^affiliate: One setting is invalid; nothing was written\.\n {2}PROCESSOR: /)
  assert.not.ok(existsSync(file))
})

it('makes the secret of events that only the commands of this machine sign', async ({ folder, file }) => {
  const instructions = 'Transfer to PK36SCBL0000001123456702, with the number of the invoice.\\nThank you.'
  const flags = ['--domain', 'partners.chenab.pk', '--smtp-url', 'off', '--processor', 'manual']
  const missing = await init(folder, flags)
  assert.match(missing.stderr, /Not a terminal; set MANUAL_PAYMENT_INSTRUCTIONS in the environment\.\n$/)
  const { code, stderr } = await init(folder, flags, { MANUAL_PAYMENT_INSTRUCTIONS: instructions })
  assert.is(code, 0, stderr)
  const values = written(file)
  assert.is(values.MANUAL_PAYMENT_INSTRUCTIONS, instructions)
  assert.match(values.PROCESSOR_WEBHOOK_SECRETS ?? '', /^whsec_[A-Za-z0-9+/]{32}$/)
  assert.is(readSettings(values).PROCESSOR, 'manual')
})

it('at a terminal asks, says all that is wrong together, and asks for that again', async ({
  folder,
  file,
}) => {
  const ended = await typeHere(['init'], {
    folder,
    columns: 80,
    environment: { APP_KEY: '' },
    typed: [
      { after: /Domain of .*: /, keys: 'partners.example.com\n' },
      { after: /Database, .*: /, keys: 'sqlite:./data/affiliate.db\n' },
      { after: /Mail server, .*: /, keys: 'smtps://mail.chenab.pk\n' },
      { after: /Sender of mails, .*: /, keys: 'no address\n' },
      { after: /Payment processor, .*: /, keys: 'http\n' },
      { after: /PROCESSOR_URL: .*: /, keys: 'https://api.bank.pk/v1\n' },
      { after: /PROCESSOR_API_KEY: .*: /, keys: 'replace\n' },
      { after: /PROCESSOR_WEBHOOK_SECRETS: .*: /, keys: `${SECRET}\n` },
      // All faults at once.
      {
        after:
          /PUBLIC_BASE_URL: names partners\.example\.com(.|\n)*PROCESSOR_API_KEY: still holds(.|\n)*MAIL_FROM: must be(.|\n)*Domain of .*: /,
        keys: 'https://partners.chenab.pk/\n',
      },
      { after: /Sender of mails, .*: /, keys: 'no-reply@chenab.pk\n' },
      { after: /PROCESSOR_API_KEY: .*: /, keys: 'a-real-key\n' },
    ],
  })
  assert.is(ended.code, 0, ended.screen)
  const { PUBLIC_BASE_URL, MAIL_FROM, PROCESSOR_API_KEY } = written(file)
  assert.equal(
    [PUBLIC_BASE_URL, MAIL_FROM, PROCESSOR_API_KEY],
    ['https://partners.chenab.pk', 'no-reply@chenab.pk', 'a-real-key'],
  )
  const canceled = await typeHere(['init', '--file', 'other.env'], {
    folder,
    typed: [{ after: /Domain of .*: /, keys: '\u0004' }],
  })
  assert.is(canceled.code, 1, canceled.screen)
  assert.equal(readdirSync(folder), ['affiliate.env'])
})

it.run()
