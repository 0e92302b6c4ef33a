import { randomBytes } from 'node:crypto'
import { store, storePage } from '../../shared/schemas/stores.ts'
import { session, type UserWire, user } from '../../shared/schemas/users.ts'
import type { Demo } from './demo.ts'
import { CREATOR, DESTINATION, MERCHANT, OTHER_CREATOR, SHOP_DOMAIN } from './scenario.ts'
import { Refused } from './service-client.ts'
import type { StepReport } from './step-report.ts'

export interface Person {
  id: string
  name: string
  email: string
  password: string
  token: string
}

export interface People {
  merchant: Person
  creator: Person
  otherCreator: Person
}

/** Random once a demo, known before anything is sent: a repeated step must say the same again. */
export interface Secrets {
  password: string
  webhookSecret: string
}

export function makeSecrets(): Secrets {
  return { password: randomBytes(12).toString('base64url'), webhookSecret: randomBytes(32).toString('hex') }
}

export async function registerPeople(demo: Demo, report: StepReport, secrets: Secrets): Promise<People> {
  const [merchant, creator, otherCreator] = await Promise.all([
    register(demo, 'merchant', MERCHANT, secrets.password),
    register(demo, 'creator', CREATOR, secrets.password),
    register(demo, 'creator', OTHER_CREATOR, secrets.password),
  ])
  report.row('merchant', merchant.name, merchant.email)
  report.row('creator', creator.name, creator.email)
  report.row('creator', otherCreator.name, otherCreator.email)
  return { merchant, creator, otherCreator }
}

/** A new account, or a new session of the one that an unanswered try has made. */
async function register(
  demo: Demo,
  role: 'merchant' | 'creator',
  who: { email: string; name: string },
  password: string,
): Promise<Person> {
  const { email, name } = who
  const credentials = { email, password }
  const { user, token } = await demo.client
    .call('POST', '/auth/register', session, { body: { ...credentials, role, display_name: name } })
    .catch((error: unknown) => {
      if (!(error instanceof Refused) || error.code !== 'email_taken') throw error
      return demo.client.call('POST', '/auth/login', session, { body: credentials })
    })
  return { id: user.id, name, email, password, token }
}

export async function connectStore(
  demo: Demo,
  report: StepReport,
  merchant: Person,
  secrets: Secrets,
): Promise<void> {
  const { token } = merchant
  const body = { shop_domain: SHOP_DOMAIN, webhook_secret: secrets.webhookSecret }
  const connected = await demo.client
    .call('POST', '/stores', store, { token, body })
    .catch(async (error: unknown) => {
      if (!(error instanceof Refused) || error.code !== 'store_taken') throw error
      const { items } = await demo.client.call('GET', '/stores', storePage, { token })
      const own = items.find((item) => item.shop_domain === SHOP_DOMAIN)
      if (!own) throw error
      return own
    })
  report.row('store', connected.shop_domain, 'its webhook secret is kept encrypted and never shown again')
}

/** Where the processor requests invoices from an account. */
export async function giveBillingAccount(demo: Demo, report: StepReport, merchant: Person): Promise<void> {
  const { billingAccount } = demo.processor
  if (billingAccount === null) return
  const { billing_account: account } = await demo.client.call('PATCH', '/me', user, {
    token: merchant.token,
    body: { billing_account: billingAccount },
  })
  report.row('invoices from', `account ending in ${account?.last4}`)
  report.check('end of the billing account', account?.last4 ?? 'none', billingAccount.iban.slice(-4))
}

export async function setDestination(demo: Demo, report: StepReport, creator: Person): Promise<void> {
  const { payout_destination: destination } = await demo.client.call('PATCH', '/me', user, {
    token: creator.token,
    body: { payout_destination: DESTINATION },
  })
  report.row('payouts to', `account ending in ${destination?.iban_last4}`, destination?.account_title ?? '')
  report.check('end of the IBAN', destination?.iban_last4 ?? 'none', DESTINATION.iban.slice(-4))
}

export function profile(demo: Demo, person: Person): Promise<UserWire> {
  return demo.client.call('GET', '/me', user, { token: person.token })
}
