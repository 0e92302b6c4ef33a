import { randomBytes } from 'node:crypto'
import { sealedTable } from '../../../platform/crypto/sealed-rows.ts'
import type { Binding } from '../../../platform/crypto/vault.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Platform } from '../../../platform/platform.ts'
import {
  ALL_SECRETS,
  deleteSecrets,
  insertSecret,
  type OwnedSecretRow,
  secretsOfEndpoints,
  type WebhookSecretRow,
} from './webhooks.store.ts'

const PURPOSE = 'webhook_endpoint.secret'
const SECRET_BYTES = 32
/** How long deliveries are also signed with a secret that was replaced, ms. */
const FORMER_SECRET_MS = 24 * 3_600_000
/** How long a repeated rotation is the same one, ms. */
const REPEAT_MS = 60_000
/** Secrets that are valid at the same time, the present one included. */
const MAX_VALID = 3

interface Owner {
  id: string
  account_id: string
}

type UnsealedRow = Omit<WebhookSecretRow, 'secret_encrypted'>

/** The expiry is sealed too, so that a former secret cannot be made valid again. */
function bindingOf(owner: Owner, row: UnsealedRow): Binding {
  return {
    purpose: PURPOSE,
    row: row.id,
    owner: owner.account_id,
    facts: [owner.id, row.endpoint_id, row.valid_until, row.created_at],
  }
}

/** A secret as Standard Webhooks writes it, 32 random bytes. */
function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

/** Makes a new secret and returns it. */
export async function createSecret(platform: Platform, tx: Tx, owner: Owner): Promise<string> {
  const secret = newSecret()
  const row = {
    id: platform.ids.next(),
    endpoint_id: owner.id,
    valid_until: null,
    created_at: platform.clock.now(),
  }
  await insertSecret(tx, { ...row, secret_encrypted: platform.vault.seal(secret, bindingOf(owner, row)) })
  return secret
}

/**
 * Makes a new secret and returns it. The present one stays valid for 24 hours, as does the newest of the former ones: at most
 * three are valid. Within a minute after a rotation, a repeat returns the same secret, so that a retried request is harmless. Secrets that
 * cannot be opened end. The caller has locked the endpoint.
 */
export async function replaceSecret(platform: Platform, tx: Tx, owner: Owner): Promise<string> {
  const now = platform.clock.now()
  const opened = ((await secretsOfEndpoints(tx, [owner.id])).get(owner.id) ?? [])
    .filter(({ valid_until }) => valid_until === null || valid_until > now)
    .flatMap((row) => {
      const text = openOrNull(platform, owner, row)
      return text === null ? [] : [{ row, text }]
    })
  const [present, replaced] = opened
  const isRotated = replaced?.row.valid_until === (present?.row.created_at ?? 0) + FORMER_SECRET_MS
  if (present && isRotated && now - present.row.created_at < REPEAT_MS) return present.text
  await deleteSecrets(tx, owner.id)
  for (const { row: former, text } of opened.slice(0, MAX_VALID - 1)) {
    const row = { ...former, valid_until: former.valid_until ?? now + FORMER_SECRET_MS }
    await insertSecret(tx, { ...row, secret_encrypted: platform.vault.seal(text, bindingOf(owner, row)) })
  }
  return createSecret(platform, tx, owner)
}

/** The valid secrets of an endpoint, the present one first. Leaves out secrets that cannot be opened, which it logs. */
export function validSecrets(platform: Platform, owner: Owner, rows: readonly WebhookSecretRow[]): string[] {
  const now = platform.clock.now()
  return rows
    .filter(({ valid_until }) => valid_until === null || valid_until > now)
    .flatMap((row) => openOrNull(platform, owner, row) ?? [])
}

function openOrNull(platform: Platform, owner: Owner, row: WebhookSecretRow): string | null {
  try {
    return platform.vault.open(row.secret_encrypted, bindingOf(owner, row))
  } catch (error) {
    platform.log.error({ err: error, endpoint: owner.id, secret: row.id }, 'a webhook secret does not open')
    return null
  }
}

/** Every endpoint's secrets, for verification and the rotation of keys. */
export const SEALED_WEBHOOK_SECRETS = sealedTable<OwnedSecretRow>({
  name: 'webhook_secrets',
  column: 'secret_encrypted',
  rows: ALL_SECRETS,
  open: (vault, row) => vault.open(row.secret_encrypted, bindingOf(ownerOf(row), row)),
  seal: (vault, row, secret) => ({ secret_encrypted: vault.seal(secret, bindingOf(ownerOf(row), row)) }),
})

function ownerOf({ endpoint_id, account_id }: OwnedSecretRow): Owner {
  return { id: endpoint_id, account_id }
}
