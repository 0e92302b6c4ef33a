import { randomBytes } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { jsonOrNull } from '../../../shared/json.ts'
import { type Config, dataFolder, SettingError } from '../config.ts'
import { makePrivateFolder } from '../private-files.ts'
import { type AppKeys, createAppKeys } from './key-ring.ts'

/**
 * The keys that encrypt stored secrets. The current key is APP_KEY or, outside production, a file that is created once; the former keys are
 * APP_KEYS_FORMER. Throws `SettingError`.
 */
export function readAppKeys(config: Config, options: { create: boolean }): AppKeys {
  const former = config.APP_KEYS_FORMER.map((text) => Buffer.from(text, 'base64'))
  const current = readCurrentKey(config, options)
  if (former.some((key) => key.equals(current))) {
    throw new SettingError('APP_KEYS_FORMER', 'contains the current APP_KEY; list only the keys it replaced')
  }
  return createAppKeys(current, former)
}

/** The keys as `readAppKeys` reads them; `null` when APP_KEY is not set and no key file exists. Throws `SettingError`. */
export function findAppKeys(config: Config): AppKeys | null {
  if (!config.APP_KEY && !existsSync(keyFile(config))) return null
  return readAppKeys(config, { create: false })
}

function keyFile(config: Config): string {
  return join(dataFolder(config), 'app.key')
}

function readCurrentKey(config: Config, options: { create: boolean }): Buffer {
  if (config.APP_KEY) return Buffer.from(config.APP_KEY, 'base64')
  const file = keyFile(config)
  if (!existsSync(file)) {
    if (!options.create) {
      throw new SettingError(
        'APP_KEY',
        `is not set and ${file} does not exist: set it, or start the service once`,
      )
    }
    createPrivateFile(file, randomBytes(32).toString('base64'))
  }
  const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'base64')
  if (key.length !== 32) throw new SettingError('APP_KEY', `${file} does not hold 32 bytes in base64`)
  return key
}

const sandboxAccess = z.object({
  api_key: z.string().min(1),
  webhook_secret: z.string().min(1),
  url: z.string().nullable(),
})

/** What the sandbox processor and the service share; `url` is set while the sandbox runs. */
export type SandboxAccess = z.infer<typeof sandboxAccess>

function sandboxFile(config: Config): string {
  return join(dataFolder(config), 'sandbox.json')
}

/** The sandbox's keys: the settings, else those of a file that is created once. `null` without a file unless `create` is set. */
export function readSandboxAccess(config: Config, options: { create: boolean }): SandboxAccess | null {
  const file = sandboxFile(config)
  if (!existsSync(file)) {
    if (!options.create) return null
    const created: SandboxAccess = {
      api_key: randomBytes(24).toString('base64url'),
      webhook_secret: `whsec_${randomBytes(24).toString('base64')}`,
      url: null,
    }
    createPrivateFile(file, JSON.stringify(created, null, 2))
  } else if (options.create) {
    // The sandbox will write here: better refused before the database is touched.
    refuseUnwritable(file, () => accessSync(dirname(file), constants.W_OK))
  }
  const { data: kept } = sandboxAccess.safeParse(jsonOrNull(readFileSync(file, 'utf8')))
  if (!kept) {
    throw new SettingError(
      'PROCESSOR',
      `${file} does not hold the sandbox's keys; remove it to create new ones`,
    )
  }
  return {
    api_key: config.PROCESSOR_API_KEY ?? kept.api_key,
    webhook_secret: config.PROCESSOR_WEBHOOK_SECRETS?.[0] ?? kept.webhook_secret,
    url: kept.url,
  }
}

export function writeSandboxAccess(config: Config, access: SandboxAccess): void {
  const file = sandboxFile(config)
  renameSync(writeDraft(file, JSON.stringify(access, null, 2)), file)
}

/** Creates a file atomically. Keeps a file that another process has created first, because that process uses it already. */
function createPrivateFile(file: string, text: string): void {
  const draft = writeDraft(file, text)
  try {
    linkSync(draft, file)
  } catch {
    // Another process has created it, or the file system has no links.
    if (!existsSync(file)) renameSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
  // The name must be on disk before anything that is sealed with the key.
  const folder = openSync(dirname(file), 'r')
  fsyncSync(folder)
  closeSync(folder)
}

/** Writes and syncs a file beside `file`, readable by this user only. */
function writeDraft(file: string, text: string): string {
  const draft = `${file}.${randomBytes(6).toString('hex')}.tmp`
  refuseUnwritable(file, () => {
    makePrivateFolder(dirname(file))
    writeFileSync(draft, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true })
  })
  return draft
}

function refuseUnwritable(file: string, write: () => void): void {
  try {
    write()
  } catch (error) {
    throw new SettingError(
      'DATA_DIR',
      `${file} cannot be written (${(error as Error).message}): make its folder writable for this user, or name another`,
    )
  }
}
