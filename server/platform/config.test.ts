// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { homeOf, mailMode, readConfig, requiresVerifiedEmail, SettingError } from './config.ts'

const KEY = Buffer.alloc(32, 1).toString('base64')
const HTTP = {
  PROCESSOR: 'http',
  PROCESSOR_URL: 'https://pay.test/v1',
  PROCESSOR_API_KEY: 'key',
  PROCESSOR_WEBHOOK_SECRETS: 'one',
}
const SHARED = { NODE_ENV: 'production', APP_KEY: KEY, PUBLIC_BASE_URL: 'https://offers.test' }
const PRODUCTION = { ...HTTP, ...SHARED }

const texts = (list: string) => list.split(' | ')

/** What the refusal says: a line for each fault. */
function refusalOf(environment: Record<string, string>): string {
  try {
    readConfig(environment)
  } catch (error) {
    assert.instance(error, SettingError)
    return (error as SettingError).message
  }
  assert.unreachable(`accepted ${JSON.stringify(environment)}`)
  return ''
}

function refused(environment: Record<string, string>, name: string): void {
  const line = refusalOf(environment)
  assert.ok(line.startsWith(`setting ${name}: `), line)
  assert.not.match(line, '\n', 'nothing else is wrong')
}

test('an empty setting is one that is not set', () => {
  assert.equal(readConfig({ PORT: '', APP_KEY: '', TRUST_PROXY: '' }), readConfig({}))
})

const PAGE = 'https://app.example.com'
const LOCAL = 'http://localhost:5173'

/** Each is taken as it is written. */
const AS_WRITTEN: Record<string, string[]> = {
  HOST: ['0.0.0.0', '::1', 'localhost'],
  DATABASE_URL: texts(
    'sqlite:/var/lib/a.db | sqlite:///var/lib/a.db | postgres://u:p@db/x | postgresql://u@/x?host=/run/pg',
  ),
  APP_KEY: [KEY],
  BILLING_PERIOD: ['weekly'],
  BILLING_TIMEZONE: ['UTC'],
  SCHEDULE_BILLING: ['off'],
  SCHEDULE_PAYOUTS: ['0 6 * jan-mar mon'],
  TRACKING_PARAMETER: ['ref-1'],
  TRUST_PROXY: ['true', 'fe80::1%eth0'],
  METRICS_TOKEN: ['sixteen-letters!'],
  SECURITY_CONTACT: ['https://example.pk/security', 'mailto:security@example.pk'],
}

const READ_AS: [name: string, text: string, value: unknown][] = [
  ['PORT', '0', 0],
  ['PORT', '65535', 65_535],
  ['PUBLIC_BASE_URL', 'https://aff.example/', 'https://aff.example'],
  ['PUBLIC_BASE_URL', 'https://aff.example/shop//', 'https://aff.example/shop'],
  ['MARKETPLACE_NAME', ' Chenab "Deals" چناب ', 'Chenab "Deals" چناب'],
  ['APP_URL', 'https://app.example/shop/', 'https://app.example/shop'],
  ['APP_KEYS_FORMER', `${KEY}, ${KEY},`, [KEY, KEY]],
  ['ROLES', 'web', ['web']],
  ['ROLES', 'worker, web,worker', ['worker', 'web']],
  ['PROCESSOR_WEBHOOK_SECRETS', 'new, old,', ['new', 'old']],
  ['PROCESSOR_TIMEOUT_MS', '100', 100],
  ['PLATFORM_FEE_RATE', '0', 0],
  ['PLATFORM_FEE_RATE', '12.5', 1250],
  ['HIGH_COMMISSION_RATE', '100', 10_000],
  ['PAYOUT_THRESHOLD', '0', 0],
  ['PAYOUT_THRESHOLD', '999.9', 99_990],
  ['TRUST_PROXY', '1', 1],
  ['TRUST_PROXY', ' 10 ', 10],
  ['TRUST_PROXY', 'loopback, 10.0.0.0/8,fd00::/8, 192.0.2.7', 'loopback,10.0.0.0/8,fd00::/8,192.0.2.7'],
  ['RAW_EVENT_RETENTION_DAYS', '1', 1],
  ['CORS_ORIGINS', `${PAGE},${LOCAL},${PAGE}`, [PAGE, LOCAL]],
  ['RATE_LIMIT_AUTH', '0', 0],
]

for (const [name, values] of Object.entries(AS_WRITTEN)) {
  test(`${name} is taken as it is written`, () => {
    for (const text of values) assert.is(readConfig({ [name]: text })[name as 'HOST'], text)
  })
}

for (const [name, text, value] of READ_AS) {
  test(`${name} takes ${text}`, () => {
    assert.equal(readConfig({ [name]: text })[name as 'PORT'], value)
  })
}

const REFUSED: Record<string, string[]> = {
  NODE_ENV: ['Production', 'prod', 'live'],
  HOST: ['a b', 'http://127.0.0.1', '127.0.0.1:80', '-x'],
  PORT: ['-1', '65536', '3000.5', '0x50', 'http', ' 80', '1e3'],
  PUBLIC_BASE_URL: texts(
    'aff.example | ftp://aff.example | https:// | https://a/?x=1 | https://a/#x | https://u:p@a/',
  ),
  MARKETPLACE_NAME: [' ', 'a: b', 'a\nb', 'a\u202eb', 'x'.repeat(61)],
  APP_URL: texts('app.example | javascript:alert(1) | https://app.example/?x=1'),
  DATABASE_URL: [
    ...texts('affiliate.db | sqlite: | sqlite::memory: | sqlite:./data/ | sqlite://data/a.db | mysql://x/y'),
    ...texts('postgres:// | postgres://a b/c | postgres://h:port/x'),
  ],
  APP_KEY: ['short', ...[31, 33].map((size) => Buffer.alloc(size).toString('base64')), `${KEY} x`, `!${KEY}`],
  APP_KEYS_FORMER: ['short', `${KEY} ${KEY}`, `${KEY},short`],
  ROLES: ['web,', 'api', 'web;worker', 'WEB'],
  PROCESSOR: ['stripe', 'Sandbox'],
  PROCESSOR_URL: ['pay.example', 'https://key@pay.example'],
  PROCESSOR_SIGNATURE: ['none', 'v1'],
  PROCESSOR_WEBHOOK_SECRETS: [',', ' , '],
  PROCESSOR_TIMEOUT_MS: ['0', '99', '120001', '10s', '1.5'],
  PLATFORM_FEE_RATE: ['-1', '100.01', '10.001', '10%', '.5', 'ten', 'NaN', '1e1'],
  HIGH_COMMISSION_RATE: ['101'],
  PAYOUT_THRESHOLD: ['-0.01', '1,000', 'Rs 1000', '1000.001', '1e3'],
  BILLING_PERIOD: ['yearly', 'Monthly'],
  BILLING_TIMEZONE: ['Karachi', 'PKT', 'Asia/Lahor', '5'],
  SCHEDULE_BILLING: texts('never | 5 0 * * | 61 0 * * * | a b c d e | */0 * * * * | 0 0 0 1 1 * | @daily'),
  SCHEDULE_PAYOUTS: ['15', '0 25 * * *', '0 0 * * 8', '0 0 31 2 *'],
  TRACKING_PARAMETER: ['aff ref', 'a=b', '1ref', 'x'.repeat(41), 'ré'],
  TRUST_PROXY: [
    ...texts('yes | proxy.example | 10.0.0.0/33 | ::/129 | 10.0.0.0/ | true,10.0.0.1 | 10.0.0.1, | 0 | 11'),
    ...texts('1.5 | -1 | 1,10.0.0.1 | 1,1'),
  ],
  RAW_EVENT_RETENTION_DAYS: ['0', '3651', 'forever'],
  LOG_LEVEL: ['loud', 'INFO'],
  CORS_ORIGINS: [
    ...['*', 'null', 'app.example.com', 'https://*.example.com', 'ftp://x.example', `${PAGE}/`, `${PAGE},`],
    ...['https://APP.example.com', `${PAGE}/path`, 'https://a:b@app.example.com'],
  ],
  METRICS_TOKEN: ['short', 'with spaces in between'],
  SECURITY_CONTACT: texts(
    'security@example.pk | http://example.pk | https:// | mailto: | mailto:a@b.pk\nContact: x',
  ),
  RATE_LIMIT_PUBLIC: ['-1', '1.5', 'off'],
}

for (const [name, values] of Object.entries(REFUSED)) {
  test(`${name} refuses nonsense with one line that names it`, () => {
    for (const value of values) refused({ [name]: value }, name)
  })
}

test('all that is wrong is said at once, each setting once', () => {
  const lines = refusalOf({
    NODE_ENV: 'production',
    PORT: 'http',
    APP_KEY: 'replace',
    PROCESSOR: 'http',
    PROCESSOR_URL: 'http://pay.pk',
    PROCESSOR_API_KEY: 'replace',
    SMTP_URL: 'smtp://mail.chenab.pk',
    DATABASE_URL: 'postgres://affiliate:replace@127.0.0.1/affiliate',
    DATABASE_READ_URL: 'postgres://replica/affiliate',
    REQUIRE_VERIFIED_EMAIL: 'yes',
  }).split('\n')
  const names = lines.map((line) => /^setting (\w+): /.exec(line)?.[1])
  assert.equal(names, [
    ...['DATABASE_URL', 'APP_KEY', 'PROCESSOR_API_KEY'],
    ...['PORT', 'REQUIRE_VERIFIED_EMAIL'],
    ...['MAIL_FROM', 'PUBLIC_BASE_URL', 'PROCESSOR_URL', 'PROCESSOR_WEBHOOK_SECRETS'],
  ])
  assert.match(lines[0] ?? '', 'still holds the placeholder "replace"')
  const unknown = refusalOf({ PROCESSOR: 'stripe', PROCESSOR_SIGNATURE: 'hmac', DATABASE_URL: 'mysql://x' })
  assert.is(unknown.split('\n').length, 2, 'nothing that only follows from another fault')
})

test('what an example left to be replaced is no value; hosts of documentation are none in production', () => {
  refused({ APP_KEY: 'changeme' }, 'APP_KEY')
  refused({ PUBLIC_BASE_URL: 'https://replace.chenab.pk' }, 'PUBLIC_BASE_URL')
  refused({ SEAL_STORAGE: 's3://replace-seals/production' }, 'SEAL_STORAGE')
  refused({ DATABASE_URL: 'postgres://affiliate:replace@127.0.0.1/affiliate' }, 'DATABASE_URL')
  refused({ ...PRODUCTION, PUBLIC_BASE_URL: 'https://partners.example.pk' }, 'PUBLIC_BASE_URL')
  refused({ ...PRODUCTION, ...SMTP, MAIL_FROM: 'Shop <no-reply@shop.example>' }, 'MAIL_FROM')
  readConfig({ PUBLIC_BASE_URL: 'https://partners.example.pk' })
})

test('a refused secret is not repeated', () => {
  assert.not.match(refusalOf({ APP_KEY: 'hunter2' }), 'hunter2')
})

test('production refuses the sandbox, even one that no one asked for, and demands a key', () => {
  refused(SHARED, 'PROCESSOR')
  refused({ ...PRODUCTION, PROCESSOR: 'sandbox' }, 'PROCESSOR')
  const manual = { PROCESSOR: 'manual', MANUAL_PAYMENT_INSTRUCTIONS: 'Bank X\\nIBAN Y' }
  const byHand = { ...SHARED, ...manual, PROCESSOR_WEBHOOK_SECRETS: 'one' }
  assert.is(readConfig(byHand).MANUAL_PAYMENT_INSTRUCTIONS, 'Bank X\nIBAN Y')
  refused({ ...byHand, MANUAL_PAYMENT_INSTRUCTIONS: ' ' }, 'MANUAL_PAYMENT_INSTRUCTIONS')
  refused({ ...byHand, MANUAL_PAYMENT_INSTRUCTIONS: '' }, 'MANUAL_PAYMENT_INSTRUCTIONS')
  refused({ ...byHand, PROCESSOR_WEBHOOK_SECRETS: '' }, 'PROCESSOR_WEBHOOK_SECRETS')
  refused({ ...byHand, PROCESSOR_SIGNATURE: 'safepay-v2' }, 'PROCESSOR_SIGNATURE')
  refused({ ...byHand, PROCESSOR_EVENTS: '{}' }, 'PROCESSOR_EVENTS')
  refused({ ...PRODUCTION, APP_KEY: '' }, 'APP_KEY')
  assert.is(readConfig(PRODUCTION).NODE_ENV, 'production')
})

test('production demands the address of affiliate links from what serves them, and trusts not every client with its own', () => {
  refused({ ...PRODUCTION, PUBLIC_BASE_URL: '' }, 'PUBLIC_BASE_URL')
  readConfig({ ...PRODUCTION, PUBLIC_BASE_URL: '', ROLES: 'worker,scheduler' })
  refused({ ...PRODUCTION, TRUST_PROXY: 'true' }, 'TRUST_PROXY')
  assert.match(refusalOf({ ...PRODUCTION, TRUST_PROXY: 'true' }), 'such as 1')
  for (const setting of ['false', '1', 'loopback', '10.0.0.0/8,192.0.2.7']) {
    readConfig({ ...PRODUCTION, TRUST_PROXY: setting })
  }
})

const PLAIN_ELSEWHERE =
  'http://pay.test/v1 | http://10.0.0.7:3000 | http://0.0.0.0:3000 | http://localhost.pay.test'
const SECURE = 'https://pay.test | http://127.0.0.1:3000 | http://localhost:8080 | http://[::1]:3000'

test('production demands https from addresses outside this machine', () => {
  for (const name of ['PUBLIC_BASE_URL', 'PROCESSOR_URL'] as const) {
    for (const address of texts(PLAIN_ELSEWHERE)) {
      refused({ ...PRODUCTION, [name]: address }, name)
      assert.match(refusalOf({ ...PRODUCTION, [name]: address }), 'must be an https address')
      assert.is(readConfig({ ...HTTP, [name]: address })[name], address, 'outside production')
    }
    for (const address of texts(SECURE)) {
      assert.is(readConfig({ ...PRODUCTION, [name]: address })[name], address)
    }
  }
})

test('a real processor needs its address, key and secrets; the sandbox signs in one way only', () => {
  for (const name of ['PROCESSOR_URL', 'PROCESSOR_API_KEY', 'PROCESSOR_WEBHOOK_SECRETS']) {
    refused({ ...HTTP, [name]: '' }, name)
  }
  refused({ PROCESSOR_SIGNATURE: 'hmac' }, 'PROCESSOR_SIGNATURE')
  assert.is(readConfig({ ...HTTP, PROCESSOR_SIGNATURE: 'hmac' }).PROCESSOR_SIGNATURE, 'hmac')
})

test('Safepay needs its ids, key and secrets, and implies how its events are signed', () => {
  const safepay = {
    PROCESSOR: 'safepay-raast',
    SAFEPAY_AGGREGATOR_ID: 'agg_1',
    SAFEPAY_MERCHANT_ID: 'am_1',
    SAFEPAY_SECRET_KEY: 'sk_1',
    PROCESSOR_WEBHOOK_SECRETS: 'one',
  }
  const config = readConfig({ ...safepay, ...SHARED })
  assert.is(config.PROCESSOR_SIGNATURE, 'safepay-raast')
  assert.is(config.SAFEPAY_URL, 'https://api.getsafepay.com/raastwire')
  assert.is(config.SAFEPAY_PAYOUT_EVENT_UNIT, 'rupees')
  assert.is(readConfig({ ...safepay, PROCESSOR_SIGNATURE: 'safepay-v2' }).PROCESSOR_SIGNATURE, 'safepay-v2')
  for (const name of Object.keys(safepay).slice(1)) refused({ ...safepay, [name]: '' }, name)
  refused({ ...safepay, SAFEPAY_AGGREGATOR_ID: 'agg/../1' }, 'SAFEPAY_AGGREGATOR_ID')
  refused({ ...safepay, SAFEPAY_SECRET_KEY: 'two words' }, 'SAFEPAY_SECRET_KEY')
  refused({ ...safepay, SAFEPAY_URL: 'api.getsafepay.com' }, 'SAFEPAY_URL')
  refused({ ...safepay, SAFEPAY_PAYOUT_EVENT_UNIT: 'cents' }, 'SAFEPAY_PAYOUT_EVENT_UNIT')
  refused({ ...safepay, ...SHARED, SAFEPAY_URL: 'http://pay.test' }, 'SAFEPAY_URL')
})

test('a click is kept forever, or for as long as an order may still name it', () => {
  for (const [days, raw, least] of [
    ['485', '90', 486],
    ['1', '90', 486],
    ['486', '91', 487],
    ['396', '1', 397],
  ] as const) {
    const settings = { CLICK_RETENTION_DAYS: days, RAW_EVENT_RETENTION_DAYS: raw }
    refused(settings, 'CLICK_RETENTION_DAYS')
    assert.match(refusalOf(settings), `at least ${least} `)
    const enough = readConfig({ ...settings, CLICK_RETENTION_DAYS: `${least}` })
    assert.is(enough.CLICK_RETENTION_DAYS, least)
  }
  refused({ CLICK_RETENTION_DAYS: '485' }, 'CLICK_RETENTION_DAYS')
  assert.is(readConfig({ CLICK_RETENTION_DAYS: '0' }).CLICK_RETENTION_DAYS, 0)
})

const SMTP = { SMTP_URL: 'smtp://mail.test', MAIL_FROM: 'Bazaar <no-reply@bazaar.pk>' }

test('SMTP_URL names a server; encryption is required unless it is on this machine or said otherwise', () => {
  const server = (SMTP_URL: string) => readConfig({ ...SMTP, SMTP_URL }).SMTP_URL
  const remote = { host: 'mail.test', port: 587, secure: false, requireTls: true, user: null, password: null }
  assert.equal(server('smtp://mail.test'), remote)
  assert.equal(server('smtp://mail.test:25?tls=optional'), { ...remote, port: 25, requireTls: false })
  const encrypted = { ...remote, port: 465, secure: true, requireTls: false }
  assert.equal(server('smtps://u%40x:p%25@mail.test'), { ...encrypted, user: 'u@x', password: 'p%' })
  assert.equal(server('smtp://[::1]:1025'), { ...remote, host: '::1', port: 1025, requireTls: false })
  assert.is(readConfig({ SMTP_URL: 'off' }).SMTP_URL, 'off')
  const wrong = 'mail.example | http://mail.example | smtp:// | smtp://a/b | smtp://a?x=1 | smtp://a#b'
  for (const SMTP_URL of texts(wrong)) refused({ ...SMTP, SMTP_URL }, 'SMTP_URL')
})

test('MAIL_FROM is an address, with or without a name, in one line', () => {
  const from = (MAIL_FROM: string) => readConfig({ ...SMTP, MAIL_FROM }).MAIL_FROM
  assert.equal(from('no-reply@bazaar.pk'), { name: '', address: 'no-reply@bazaar.pk' })
  assert.equal(from('"بازار" <a@b.pk>'), { name: 'بازار', address: 'a@b.pk' })
  for (const wrong of ['Bazaar', 'a@b, c@d', 'A <a@b> <c@d>', 'A\r\nBcc: x@y <a@b>', '<a@b>\n'.repeat(2)])
    refused({ ...SMTP, MAIL_FROM: wrong }, 'MAIL_FROM')
  refused({ SMTP_URL: 'smtp://mail.example' }, 'MAIL_FROM')
})

test('without SMTP_URL mail goes to files, and nowhere in production; addresses are verified where mail is sent', () => {
  const modes = (environment: Record<string, string>) => {
    const config = readConfig(environment)
    return [mailMode(config), requiresVerifiedEmail(config)]
  }
  assert.equal(modes({}), ['file', false])
  assert.equal(modes(SMTP), ['smtp', false])
  assert.equal(modes(PRODUCTION), ['off', false])
  assert.equal(modes({ ...PRODUCTION, ...SMTP }), ['smtp', true])
  assert.equal(modes({ ...PRODUCTION, ...SMTP, REQUIRE_VERIFIED_EMAIL: 'false' }), ['smtp', false])
  assert.equal(modes({ REQUIRE_VERIFIED_EMAIL: 'true' }), ['file', true])
  refused({ ...PRODUCTION, REQUIRE_VERIFIED_EMAIL: 'true' }, 'REQUIRE_VERIFIED_EMAIL')
  refused({ SMTP_URL: 'off', REQUIRE_VERIFIED_EMAIL: 'true' }, 'REQUIRE_VERIFIED_EMAIL')
})

test('the other database addresses are for PostgreSQL, and a replica is one host', () => {
  const url = 'postgres://a:5432,b:5432/db?target_session_attrs=read-write'
  const pooled = { DATABASE_URL: 'postgres://pooler/db', DATABASE_DIRECT_URL: url }
  assert.is(readConfig({ ...pooled, DATABASE_READ_URL: 'postgres://r/db' }).DATABASE_DIRECT_URL, url)
  for (const name of ['DATABASE_DIRECT_URL', 'DATABASE_READ_URL']) {
    refused({ DATABASE_URL: 'postgres://a/db', [name]: 'sqlite:./a.db' }, name)
    refused({ DATABASE_URL: 'sqlite:./a.db', [name]: 'postgres://a/db' }, name)
  }
  for (const replica of ['postgres://r1,r2/db', 'postgres://r/db?target_session_attrs=primary']) {
    refused({ DATABASE_URL: url, DATABASE_READ_URL: replica }, 'DATABASE_READ_URL')
  }
  refused({ DATABASE_URL: 'postgres://a,b/db?target_session_attrs=any' }, 'DATABASE_URL')
})

test('people are led back to APP_URL, else to the portal while it is on', () => {
  const home = (environment: Record<string, string>) =>
    homeOf({ config: readConfig(environment), publicBaseUrl: 'https://offers.test' })
  assert.is(home({}), 'https://offers.test/app')
  assert.is(home({ PORTAL: 'off' }), null)
  assert.is(home({ PORTAL: 'off', APP_URL: PAGE }), PAGE)
})

test.run()
