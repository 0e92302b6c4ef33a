import { SEALED_WEBHOOK_SECRETS } from '../notifications/channels/webhooks/endpoint-secrets.service.ts'
import type { SealedRow, SealedTable } from '../platform/crypto/sealed-rows.ts'
import { createVault, IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import { SEALED_SECRETS } from '../stores/store-secrets.service.ts'
import { SEALED_BILLING_ACCOUNTS, SEALED_DESTINATIONS } from '../users/sealed-accounts.service.ts'
import { SEALED_SECOND_FACTORS } from '../users/second-factor.service.ts'
import { type Invariant, inPages } from './invariant.ts'

const PAGE = 500

/** What must hold of the columns that are sealed with APP_KEY. */
export const SEALED_INVARIANTS: Invariant[] = [
  sealedInvariant(
    'sealed-destinations',
    SEALED_DESTINATIONS,
    'payout destination',
    'Each payout destination opens with the key, in its own row, for its own user and times, and is the IBAN whose fingerprint and last four characters stand beside it.',
  ),
  sealedInvariant(
    'sealed-billing-accounts',
    SEALED_BILLING_ACCOUNTS,
    'billing account',
    'Each billing account opens with the key, in its own row, for its own merchant and time, and has its last four characters beside it.',
  ),
  sealedInvariant(
    'sealed-second-factors',
    SEALED_SECOND_FACTORS,
    'second factor of user',
    "Each second factor's secret opens with the key, in its own row, for its own user and time.",
  ),
  sealedInvariant(
    'sealed-store-secrets',
    SEALED_SECRETS,
    'store secret',
    "Each store's webhook secret opens with the key, in its own row, for its own merchant, domain and times, and has its fingerprint beside it.",
  ),
  sealedInvariant(
    'sealed-webhook-secrets',
    SEALED_WEBHOOK_SECRETS,
    'webhook secret',
    "Each webhook endpoint's secret opens with the key, in its own row, for its own account, endpoint and times.",
  ),
]

function sealedInvariant(name: string, table: SealedTable, subject: string, statement: string): Invariant {
  return {
    name,
    statement,
    table: table.name,
    breaches(db, keys) {
      const vault = createVault(keys)
      return inPages(
        (after: SealedRow | null) => table.page(db, vault, after?.id ?? null, PAGE),
        async (page) => {
          const problems = await Promise.all(page.map(problemOf))
          return page.flatMap(({ id }, at) =>
            problems[at] ? [{ subject: `${subject} ${id}`, detail: problems[at] }] : [],
          )
        },
      )
    },
  }
}

async function problemOf(row: SealedRow): Promise<string | null> {
  try {
    await row.open()
    return null
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return error.message
    throw error
  }
}
