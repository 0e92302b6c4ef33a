import type { Command } from 'commander'
import { type GlobalOptions, serviceEnvironment } from '../command.ts'
import { examine } from '../doctor/examine.ts'
import type { Finding } from '../doctor/finding.ts'
import { Failure } from '../failures.ts'
import { layoutOf, Output } from '../terminal/output.ts'

export async function doctor(
  { afterFailover = false }: { afterFailover?: boolean },
  command: Command,
): Promise<void> {
  const options = command.optsWithGlobals<GlobalOptions>()
  const { json = false } = options
  const environment = serviceEnvironment(options)
  const out = new Output({ json, zone: 'UTC', layout: layoutOf(process.stdout, environment) })
  const progress = (what: string) => out.progress(`looking at ${what}`)
  const findings = await examine(environment, progress, afterFailover).finally(() => out.endProgress())
  const failed = findings.filter(({ state }) => state === 'fail')
  const warned = findings.filter(({ state }) => state === 'warn')
  out.show({ ok: failed.length === 0, checks: findings }, () => [
    ...findings.flatMap((finding) => findingLines(out, finding)),
    '',
    failed.length + warned.length === 0
      ? out.style('green', 'Everything is as it should be.')
      : `${failed.length} to fix, ${warned.length} to check.`,
  ])
  if (failed.length > 0) {
    throw new Failure(`The doctor found ${failed.map(({ name }) => name).join(', ')} to be fixed.`, {
      code: 'unavailable',
    })
  }
}

const MARKS = { ok: ['green', '✓'], warn: ['yellow', '!'], fail: ['red', '✗'], info: ['dim', '·'] } as const

function findingLines(out: Output, { name, state, detail, mend }: Finding): string[] {
  const [style, mark] = MARKS[state]
  return [
    `${out.style(style, mark)} ${name.padEnd(10)} ${detail}`,
    ...(mend === null ? [] : [`${' '.repeat(13)}${out.style('bold', '→')} ${mend}`]),
  ]
}
