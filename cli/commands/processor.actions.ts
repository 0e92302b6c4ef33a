import type { Command } from 'commander'
import { readConfig } from '../../server/platform/config.ts'
import {
  type Registration,
  registerWebhook,
  SafepayRefusal,
} from '../../server/processor/safepay/safepay-account.ts'
import { openSafepayApi, safepayOptions } from '../../server/processor/safepay/safepay-processor.ts'
import type { GlobalOptions } from '../command.ts'
import { Failure } from '../failures.ts'
import { layoutOf, Output } from '../terminal/output.ts'
import { printable } from '../terminal/printable-text.ts'

/** Before the first registration there is no secret yet, which the settings demand otherwise. */
const NO_SECRET_YET = 'none'

export async function register({ rotate = false }: { rotate?: boolean }, command: Command): Promise<void> {
  const { json = false } = command.optsWithGlobals<GlobalOptions>()
  const secrets = process.env.PROCESSOR_WEBHOOK_SECRETS || NO_SECRET_YET
  const config = readConfig({ ...process.env, PROCESSOR_WEBHOOK_SECRETS: secrets })
  if (config.PROCESSOR !== 'safepay-raast') {
    throw new Failure('Only Safepay has a registration: set PROCESSOR=safepay-raast.')
  }
  if (config.PUBLIC_BASE_URL === undefined) {
    throw new Failure('Set PUBLIC_BASE_URL to the https address that leads to this service.')
  }
  const api = openSafepayApi(safepayOptions(config))
  try {
    const url = `${config.PUBLIC_BASE_URL}/webhooks/processor`
    const registration = await registerWebhook(api, { url, rotate })
    const layout = layoutOf(process.stdout, process.env)
    const out = new Output({ json, zone: config.BILLING_TIMEZONE, layout })
    const { change, endpoint, secret } = registration
    out.show({ change, url, endpoint: endpoint.token, secret }, () => [
      printable(`${CHANGES[change]} ${url} (${endpoint.token}).`),
      ...secretLines(registration),
    ])
  } catch (error) {
    if (!(error instanceof SafepayRefusal)) throw error
    const check = error.setting === null ? '' : ` Check ${error.setting}.`
    throw new Failure(printable(`Safepay did not register the webhook: ${error.message}.${check}`))
  } finally {
    await api.close()
  }
}

const CHANGES = {
  created: 'Registered',
  updated: 'Corrected the registration of',
  rotated: 'Made a new secret for',
  kept: 'Nothing to change for',
} as const

function secretLines({ change, secret }: Registration): string[] {
  if (secret === null) {
    return change === 'kept' ? ['Its secret is not shown again; --rotate makes a new one.'] : []
  }
  return [
    printable(`Signing secret, shown only now: ${secret}`),
    'Set it as PROCESSOR_WEBHOOK_SECRETS, first with any former one after a comma, and restart the service.',
  ]
}
