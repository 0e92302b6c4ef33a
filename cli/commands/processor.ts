import type { Command } from 'commander'
import type { Registration } from '../../server/processor/safepay/safepay-account.ts'
import { addGroup, exampleText, type GlobalOptions } from '../command.ts'
import { Failure } from '../failures.ts'
import { layoutOf, Output } from '../terminal/output.ts'
import { printable } from '../terminal/printable-text.ts'

export function addProcessorCommands(program: Command): void {
  const group = addGroup(program, 'processor', 'the payment processor: register for its events')
  group
    .command('register-webhook')
    .description(
      'register PUBLIC_BASE_URL/webhooks/processor with Safepay for the events that the service needs, or correct the registration',
    )
    .option('--rotate', 'give the endpoint a new signing secret')
    .addHelpText(
      'after',
      `
It prints a new signing secret once. Put it into PROCESSOR_WEBHOOK_SECRETS,
first with any former one after a comma, and restart the service at once: until
then it refuses events that are signed with the new secret, and Safepay gives up
after 31 s. Then run "affiliate doctor" and "affiliate billing reconcile".
${exampleText('processor register-webhook', 'processor register-webhook --rotate --json')}`,
    )
    .action((options: { rotate?: boolean }, command: Command) => register(options.rotate ?? false, command))
}

/** Before the first registration there is no secret yet, which the settings demand otherwise. */
const NO_SECRET_YET = 'none'

async function register(rotate: boolean, command: Command): Promise<void> {
  const { json = false } = command.optsWithGlobals<GlobalOptions>()
  const { readConfig } = await import('../../server/platform/config.ts')
  const secrets = process.env.PROCESSOR_WEBHOOK_SECRETS || NO_SECRET_YET
  const config = readConfig({ ...process.env, PROCESSOR_WEBHOOK_SECRETS: secrets })
  if (config.PROCESSOR !== 'safepay-raast') {
    throw new Failure('Only Safepay has a registration: set PROCESSOR=safepay-raast.')
  }
  if (config.PUBLIC_BASE_URL === undefined) {
    throw new Failure('Set PUBLIC_BASE_URL to the https address that leads to this service.')
  }
  const { SafepayApi } = await import('../../server/processor/safepay/safepay-api.ts')
  const { safepayOptions } = await import('../../server/processor/safepay/safepay-settings.ts')
  const account = await import('../../server/processor/safepay/safepay-account.ts')
  const api = new SafepayApi(safepayOptions(config))
  try {
    const url = `${config.PUBLIC_BASE_URL}/webhooks/processor`
    const registration = await account.registerWebhook(api, { url, rotate })
    const out = new Output({
      json,
      zone: config.BILLING_TIMEZONE,
      layout: layoutOf(process.stdout, process.env),
    })
    out.show(documentOf(registration, url), () => linesOf(registration, url))
  } catch (error) {
    if (!(error instanceof account.SafepayRefusal)) throw error
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

function linesOf({ change, endpoint, secret }: Registration, url: string): string[] {
  return [
    printable(`${CHANGES[change]} ${url} (${endpoint.token}).`),
    ...(secret === null
      ? change === 'kept'
        ? ['Its secret is not shown again; --rotate makes a new one.']
        : []
      : [
          printable(`Signing secret, shown only now: ${secret}`),
          'Set it as PROCESSOR_WEBHOOK_SECRETS, first with any former one after a comma, and restart the service.',
        ]),
  ]
}

function documentOf({ change, endpoint, secret }: Registration, url: string) {
  return { change, url, endpoint: endpoint.token, secret }
}
