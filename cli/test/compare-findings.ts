// To be imported before a command: keeps in the file FINDINGS what `findModule` says otherwise than Node does.
import { writeFileSync } from 'node:fs'
import { type ResolveFnOutput, registerHooks } from 'node:module'
import { findModule } from '../find-modules.ts'

export interface Findings {
  /** How many imports Node was not asked about. */
  unasked: number
  otherwise: string[]
}

const findings: Findings = { unasked: 0, otherwise: [] }
const words = ({ url, format }: ResolveFnOutput) => `${url} (${format})`

registerHooks({
  resolve(specifier, context, next) {
    const byNode = next(specifier, context)
    let asked = false
    const found = findModule(specifier, context, () => {
      asked = true
      return byNode
    })
    if (!asked) findings.unasked += 1
    if (words(found) !== words(byNode))
      findings.otherwise.push(`${specifier} of ${context.parentURL}: ${words(found)}, Node: ${words(byNode)}`)
    return byNode
  },
})

process.on('exit', () => writeFileSync(process.env.FINDINGS ?? '', JSON.stringify(findings)))
