import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { readConfig, SETTING_NAMES, SettingError } from '../../server/platform/config.ts'
import { nearestWord } from '../../server/platform/nearest-word.ts'
import { type Finding, type Found, fail, info, ok, warn } from './finding.ts'

const LEAST = [22, 19] as const

export function examineRuntime(version: string = process.versions.node): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const new_ = major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1])
  const detail = `Node.js ${version} on ${process.platform} ${process.arch}`
  return new_
    ? ok('runtime', detail)
    : fail('runtime', detail, `Install Node.js ${LEAST.join('.')} or newer.`)
}

export function examineSettings(environment: Record<string, string | undefined>): Found {
  return [readable(environment), unknownNames()]
}

function readable(environment: Record<string, string | undefined>): Finding {
  try {
    const { NODE_ENV, ROLES, PROCESSOR } = readConfig(environment)
    return ok('settings', `${NODE_ENV}, roles ${ROLES.join(', ')}, processor ${PROCESSOR}`)
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    return fail(
      'settings',
      error.message,
      'Correct it in the environment or in .env; server/guides/settings.md lists all settings.',
    )
  }
}

/** In .env there are our settings only, so a name that is none of them is a slip of the pen. */
function unknownNames(): Found {
  if (!existsSync('.env'))
    return info('settings', 'no .env file in this folder: settings come from the environment')
  const names = Object.keys(parseEnv(readFileSync('.env', 'utf8')))
  return names.map((name) => {
    if (SETTING_NAMES.includes(name)) return null
    const nearest = nearestWord(name, SETTING_NAMES)
    if (nearest === null) return null
    return warn('settings', `.env sets ${name}, which nothing reads`, `Did you mean ${nearest}?`)
  })
}
