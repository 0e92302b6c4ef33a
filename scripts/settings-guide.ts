import { readFileSync, writeFileSync } from 'node:fs'
import type { z } from 'zod'
import { SETTING_GROUPS } from '../server/platform/settings.ts'

export const SETTINGS_GUIDE = new URL('../server/guides/settings.md', import.meta.url)
const OPENING = '<!-- settings: written by npm run settings:guide -->'
const CLOSING = '<!-- end of settings -->'

/** `text` with the tables of all settings between its two marks. */
export function withSettings(text: string): string {
  const start = text.indexOf(OPENING)
  const end = text.indexOf(CLOSING)
  if (start < 0 || end < start) throw new Error(`settings.md needs the lines ${OPENING} and ${CLOSING}`)
  const tables = Object.entries(SETTING_GROUPS).map(([group, settings]) => table(group, settings))
  return `${text.slice(0, start)}${OPENING}\n\n${tables.join('\n')}\n${text.slice(end)}`
}

function table(group: string, settings: Record<string, z.ZodType>): string {
  const rows = Object.entries(settings).map(([name, setting]) => {
    const { description } = setting.meta() ?? {}
    if (!description) throw new Error(`describe ${name} in server/platform/settings.ts`)
    return `| \`${name}\` | ${defaultText(setting)} | ${description.replaceAll('|', '\\|')} |\n`
  })
  return `## ${group}\n\n| name | default | meaning |\n|---|---|---|\n${rows.join('')}`
}

/** The default as one would write it in the environment, or what applies without a value. */
function defaultText(setting: z.ZodType): string {
  const { def } = setting as z.ZodType & { def: { defaultValue?: unknown } }
  const value = def.defaultValue
  if (value === undefined || Array.isArray(value)) return String(setting.meta()?.unset ?? 'none')
  return `\`${value}\``
}

if (import.meta.main) writeFileSync(SETTINGS_GUIDE, withSettings(readFileSync(SETTINGS_GUIDE, 'utf8')))
