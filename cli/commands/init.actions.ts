import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { Command } from 'commander'
import { REQUIRED_BY, SettingError, type SettingFault } from '../../server/platform/config.ts'
import { SETTING_GROUPS } from '../../server/platform/settings.ts'
import { readSettings } from '../../server/read-settings.ts'
import type { GlobalOptions } from '../command.ts'
import { Failure, interrupted } from '../failures.ts'
import { SETTINGS_FILE } from '../settings-files.ts'
import { layoutOf, Output } from '../terminal/output.ts'
import { printLines } from '../terminal/printable-text.ts'
import { Terminal } from '../terminal/prompts.ts'

type Values = Record<string, string>

interface InitOptions {
  file?: string
  domain?: string
  smtpUrl?: string
  mailFrom?: string
  processor?: string
}

/** Writes a settings file for production, from options, the environment and what is asked at the terminal. Never over an existing file. */
export async function init(options: InitOptions, command: Command): Promise<void> {
  const { json = false, databaseUrl } = command.optsWithGlobals<GlobalOptions>()
  const out = new Output({ json, zone: 'UTC', layout: layoutOf(process.stdout, process.env) })
  const file = resolve(options.file ?? SETTINGS_FILE)
  refuseExisting(file)
  const values = valuesOf({ ...options, databaseUrl })
  if (process.stdin.isTTY && process.stderr.isTTY) await askUntilValid(values)
  else refuseIncomplete(values)
  const written = withKeys(values)
  writePrivate(file, fileText(written))
  out.show({ file, settings: Object.keys(written) }, () => [
    `Wrote ${file}, which only this user can read.`,
    'Keep a copy of its APP_KEY in another place: without it, no bank account and no webhook secret can be read.',
    'Next: start the service with this file, and run "affiliate doctor".',
  ])
}

function refuseExisting(file: string): void {
  if (!existsSync(file)) return
  throw new Failure(`${file} exists already. Edit it, or name another file with --file.`)
}

interface Question {
  name: string
  /** Of the command line; without one the environment sets it. */
  flag?: string
  text: string
  /** What Enter alone answers. */
  preset?: string
  /** Whether it is asked, by what is known so far. */
  when?: (values: Values) => boolean
}

const SERVICE_FOLDER = '/var/lib/affiliate'

const QUESTIONS: readonly Question[] = [
  {
    name: 'PUBLIC_BASE_URL',
    flag: '--domain',
    text: 'Domain of affiliate links and webhooks, such as partners.chenab.pk',
  },
  {
    name: 'DATABASE_URL',
    flag: '--database-url',
    text: 'Database, sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE',
    preset: `sqlite:${existsSync(SERVICE_FOLDER) ? SERVICE_FOLDER : './data'}/affiliate.db`,
  },
  {
    name: 'SMTP_URL',
    flag: '--smtp-url',
    text: 'Mail server, smtp://USER:PASSWORD@HOST:587, or off for no mail',
  },
  {
    name: 'MAIL_FROM',
    flag: '--mail-from',
    text: 'Sender of mails, such as Chenab <no-reply@chenab.pk>',
    when: ({ SMTP_URL }) => SMTP_URL !== undefined && SMTP_URL !== 'off',
  },
  {
    name: 'PROCESSOR',
    flag: '--processor',
    text: `Payment processor, ${realProcessors().join(', ')}`,
  },
]

/** Those that move money. */
export function realProcessors(): string[] {
  return Object.keys(REQUIRED_BY).filter((name) => name !== 'sandbox')
}

const DESCRIPTIONS = new Map(
  Object.values(SETTING_GROUPS).flatMap((group) =>
    Object.entries(group).map(([name, setting]) => [name, setting.meta()?.description ?? '']),
  ),
)

/** What the processor needs besides. */
function processorQuestions({ PROCESSOR = '' }: Values): Question[] {
  const names: readonly string[] = REQUIRED_BY[PROCESSOR as keyof typeof REQUIRED_BY] ?? []
  return names.map((name) => ({
    name,
    text: `${name}: ${(DESCRIPTIONS.get(name) ?? '').replaceAll('`', '').split(';')[0]}`,
  }))
}

function questionsFor(values: Values): Question[] {
  const asked = [...QUESTIONS, ...processorQuestions(values)]
  return asked.filter(({ when = () => true }) => when(values))
}

/** What options and the environment answer already. */
function valuesOf(options: InitOptions & { databaseUrl?: string | undefined }): Values {
  const names = [
    ...QUESTIONS.map(({ name }) => name),
    ...Object.values(REQUIRED_BY).flat(),
    ...['APP_KEY', 'METRICS_TOKEN', 'TRUST_PROXY', 'SEAL_STORAGE'],
  ]
  const { domain, databaseUrl, smtpUrl, mailFrom, processor } = options
  const given = {
    PUBLIC_BASE_URL: domain === undefined ? undefined : addressOf(domain),
    DATABASE_URL: databaseUrl,
    SMTP_URL: smtpUrl,
    MAIL_FROM: mailFrom,
    PROCESSOR: processor,
  }
  const values: Values = { NODE_ENV: 'production', TRUST_PROXY: 'loopback' }
  const fromEnvironment = names.map((name) => [name, process.env[name]] as const)
  for (const [name, text] of [...fromEnvironment, ...Object.entries(given)]) if (text) values[name] = text
  return values
}

/** `partners.chenab.pk` → `https://partners.chenab.pk`. */
function addressOf(domain: string): string {
  const text = domain.trim().replace(/\/+$/, '')
  return text.includes('://') ? text : `https://${text}`
}

async function askUntilValid(values: Values): Promise<void> {
  const terminal = new Terminal()
  try {
    for (;;) {
      for (let next = firstOpen(values); next !== undefined; next = firstOpen(values)) {
        const answer = (await askOne(terminal, next)) || next.preset
        if (answer) values[next.name] = next.name === 'PUBLIC_BASE_URL' ? addressOf(answer) : answer
      }
      const faults = faultsOf(values)
      if (faults.length === 0) return
      printLines(faultLines(faults), process.stderr)
      const open = new Set(questionsFor(values).map(({ name }) => name))
      if (!faults.every(({ name }) => open.has(name))) throw invalid(faults)
      for (const { name } of faults) delete values[name]
    }
  } finally {
    terminal.close()
  }
}

function firstOpen(values: Values): Question | undefined {
  return questionsFor(values).find(({ name }) => values[name] === undefined && !isMade(name, values))
}

async function askOne(terminal: Terminal, { text, preset }: Question): Promise<string> {
  const answer = await terminal.ask(`${text}${preset === undefined ? '' : ` [${preset}]`}: `)
  if (terminal.interrupted) throw interrupted()
  if (answer === null) throw new Failure('Nothing was written.')
  return answer
}

/** Refuses what a terminal would be asked for, all at once. */
function refuseIncomplete(values: Values): void {
  const open = questionsFor(values).filter(
    ({ name, preset }) => values[name] === undefined && preset === undefined && !isMade(name, values),
  )
  for (const { name, preset } of questionsFor(values)) {
    if (preset !== undefined) values[name] ??= preset
  }
  const flags = open.flatMap(({ flag }) => flag ?? [])
  const names = open.flatMap(({ name, flag }) => (flag ? [] : name))
  if (open.length > 0) {
    const steps = [
      ...(flags.length > 0 ? [`pass ${flags.join(', ')}`] : []),
      ...(names.length > 0 ? [`set ${names.join(', ')} in the environment`] : []),
    ]
    throw new Failure(`Not a terminal; ${steps.join(', and ')}.`, { code: 'validation_failed' })
  }
  const faults = faultsOf(values)
  if (faults.length > 0) throw invalid(faults)
}

/** Secrets that no one else has to know: made here. */
function isMade(name: string, { PROCESSOR }: Values): boolean {
  return name === 'PROCESSOR_WEBHOOK_SECRETS' && PROCESSOR === 'manual'
}

function withKeys(values: Values): Values {
  const made = {
    APP_KEY: randomBytes(32).toString('base64'),
    METRICS_TOKEN: randomBytes(24).toString('hex'),
    ...(isMade('PROCESSOR_WEBHOOK_SECRETS', values) && {
      PROCESSOR_WEBHOOK_SECRETS: `whsec_${randomBytes(24).toString('base64')}`,
    }),
  }
  return { ...made, ...values }
}

function faultsOf(values: Values): readonly SettingFault[] {
  try {
    readSettings(withKeys(values))
    return []
  } catch (error) {
    if (error instanceof SettingError) return error.faults
    throw error
  }
}

function faultLines(faults: readonly SettingFault[]): string[] {
  return faults.map(({ name, problem }) => `  ${name}: ${problem}`)
}

function invalid(faults: readonly SettingFault[]): Failure {
  const count = faults.length === 1 ? 'One setting is' : `${faults.length} settings are`
  return new Failure(`${count} invalid; nothing was written.`, {
    code: 'validation_failed',
    lines: faultLines(faults),
    extra: { issues: faults.map(({ name: path, problem: message }) => ({ path, message })) },
  })
}

/** In the order of the guide. Throws `Failure` for a value that no settings file can hold. */
function fileText(values: Values): string {
  const names = [...DESCRIPTIONS.keys()].filter((name) => values[name] !== undefined)
  const text = [
    '# Settings of the service in production, written by "affiliate init". Every setting: server/guides/settings.md.',
    ...names.map((name) => `${name}=${quoted(values[name] ?? '')}`),
    '',
  ].join('\n')
  const read = parseEnv(text)
  const lost = names.filter((name) => read[name] !== values[name])
  if (lost.length === 0) return text
  throw new Failure(`${lost.join(', ')}: a settings file cannot hold both kinds of quotes or a backslash.`)
}

/** As systemd, Node and container engines read it alike. */
function quoted(value: string): string {
  if (/^[\w@%:/.,+=?&~-]*$/.test(value)) return value
  return value.includes("'") ? `"${value}"` : `'${value}'`
}

/** Whole or not at all, and never over a file that came meanwhile. */
function writePrivate(file: string, text: string): void {
  const draft = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true })
    linkSync(draft, file)
  } catch (error) {
    refuseExisting(file)
    throw new Failure(`${file} cannot be written: ${(error as Error).message}`)
  } finally {
    rmSync(draft, { force: true })
  }
}
