import { CURRENCY, formatMoney } from '../../shared/money.ts'
import type { UserWire } from '../../shared/schemas/users.ts'
import { merchantAccount } from '../billing/billing.service.ts'
import { makeInvoicesDue } from '../billing/invoices.service.ts'
import { creatorBalance } from '../ledger/ledger.service.ts'
import { refreshMerchantName } from '../offers/offers.service.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { checkIban, checkRaastId } from '../users/bank-accounts.rule.ts'
import { isRightPassword } from '../users/password-attempts.service.ts'
import {
  type AccountChange,
  addBillingAccount,
  addDestination,
  billingAccountChange,
  destinationChange,
  ownBillingAccount,
  ownDestinations,
} from '../users/sealed-accounts.service.ts'
import { hasSecondFactor, requireFreshSession } from '../users/second-factor.service.ts'
import { isSessionFresh } from '../users/sessions.service.ts'
import { wireUser } from '../users/user-wire.ts'
import {
  lockActiveUser,
  renameUser,
  requireVerifiedEmail,
  type UserRow,
  userRow,
} from '../users/users.service.ts'

/** The account as its owner sees it. Refuses with `not_found`. */
export function profileOf(platform: Platform, userId: string): Promise<UserWire> {
  return readProfile(platform, platform.database.reader, userId)
}

async function readProfile(platform: Platform, db: Queries, userId: string): Promise<UserWire> {
  const row = await userRow(db, userId)
  const user = { ...wireUser(row), second_factor: await hasSecondFactor(platform, db, userId) }
  if (row.role === 'merchant') {
    const { expected, receivable, availableCredit } = await merchantAccount(db, userId)
    const account = {
      open_cycle_due: formatMoney(expected?.amountDue ?? 0),
      unpaid: formatMoney(receivable),
      credit_available: formatMoney(availableCredit),
      currency: CURRENCY,
    } as const
    return { ...user, account, billing_account: await ownBillingAccount(db, userId) }
  }
  if (row.role !== 'creator') return user
  const destinations = await ownDestinations(platform, db, userId)
  const { pending, released, inTransit, paid } = await creatorBalance(db, userId)
  const balance = {
    pending: formatMoney(pending),
    released: formatMoney(released),
    in_transit: formatMoney(inTransit),
    paid: formatMoney(paid),
    payout_threshold: formatMoney(platform.config.PAYOUT_THRESHOLD),
    currency: CURRENCY,
  } as const
  return { ...user, ...destinations, balance }
}

interface ProfileChange {
  displayName?: string
  destination?: { iban: string; account_title: string }
  billingAccount?: { iban?: string | undefined; raast_id?: string | undefined }
  currentPassword?: string
  /** The caller's session. A bank account needs it to be fresh when the user's second factor is on. */
  sessionId?: string
  /** The client's network address: wrong passwords are counted by it. */
  address?: string
}

/**
 * Changes what is given. A creator's first payout destination and a merchant's first billing account count at once; the first destination
 * needs a recent log-in, a step-up or the password once there are earnings. Replacing one needs the password and raises a flag; a
 * replaced payout destination takes effect after 24 hours. Refuses with `validation_failed`,
 * `step_up_required` and `invalid_credentials`.
 */
export async function updateProfile(
  platform: Platform,
  userId: string,
  change: ProfileChange,
): Promise<UserWire> {
  const row = await userRow(platform.database.reader, userId)
  const account = newAccount(platform, row, change)
  if (change.destination) await requireVerifiedEmail(platform, platform.database.reader, userId)
  if (account) await requireFreshSession(platform, userId, change.sessionId)
  const passwordGiven = account !== null && (await checkPassword(platform, row, change))
  const { sessionId } = change
  const isConfirmed =
    account === null ||
    passwordGiven ||
    !sessionId ||
    (await isSessionFresh(platform, userId, sessionId, { orLogin: true }))
  return platform.database.transaction(async (tx) => {
    if (change.displayName !== undefined && change.displayName !== row.display_name) {
      await renameUser(tx, userId, change.displayName)
      if (row.role === 'merchant') await refreshMerchantName(platform, tx, userId)
    }
    if (account) await changeAccount(tx, row, account, { passwordGiven, isConfirmed })
    return readProfile(platform, tx, userId)
  })
}

/** A bank account that a user gives: a creator's payout destination or a merchant's billing account. */
interface NewAccount {
  /** In words, for messages. */
  name: string
  compare(db: Queries): Promise<AccountChange>
  add(tx: Tx, change: AccountChange): Promise<void>
}

/** Refuses an account that is malformed or not for the user's role. */
function newAccount(platform: Platform, user: UserRow, change: ProfileChange): NewAccount | null {
  const { destination, billingAccount } = change
  if (destination && user.role !== 'creator') throw invalid('payout_destination', 'is for creators only')
  if (billingAccount && user.role !== 'merchant') throw invalid('billing_account', 'is for merchants only')
  if (destination) {
    const { account_title } = destination
    const account = { iban: checked('payout_destination.iban', checkIban(destination.iban)), account_title }
    return {
      name: 'payout destination',
      compare: (db) => destinationChange(platform, db, user.id, account),
      add: (tx) => addDestination(platform, tx, user.id, account),
    }
  }
  if (billingAccount) {
    const account = checkedBillingAccount(billingAccount)
    return {
      name: 'billing account',
      compare: (db) => billingAccountChange(platform, db, user.id, account),
      async add(tx, change) {
        await addBillingAccount(platform, tx, user.id, account)
        if (change === 'first') await makeInvoicesDue(platform, tx, user.id)
      },
    }
  }
  return null
}

function checkedBillingAccount({ iban, raast_id }: NonNullable<ProfileChange['billingAccount']>) {
  if ((iban === undefined) === (raast_id === undefined))
    throw invalid('billing_account', 'must have either iban or raast_id')
  return iban === undefined
    ? { raastId: checked('billing_account.raast_id', checkRaastId(raast_id ?? '')) }
    : { iban: checked('billing_account.iban', checkIban(iban)) }
}

function checked(path: string, check: ReturnType<typeof checkIban>): string {
  if (!check.ok) throw invalid(path, check.message)
  return check.text
}

/** Whether a password was given. Refuses a wrong one. */
async function checkPassword(
  platform: Platform,
  user: UserRow,
  { currentPassword: password, address = '' }: ProfileChange,
): Promise<boolean> {
  if (password === undefined) return false
  if (await isRightPassword(platform, { email: user.email, user, password, address })) return true
  throw new Refusal('invalid_credentials', 'The current password is wrong.')
}

async function changeAccount(
  tx: Tx,
  user: UserRow,
  account: NewAccount,
  { passwordGiven, isConfirmed }: { passwordGiven: boolean; isConfirmed: boolean },
): Promise<void> {
  // The password was compared before the transaction.
  const isUnchanged = await lockActiveUser(tx, user)
  if (!isUnchanged) throw new Refusal('conflict', 'The account changed meanwhile. Log in again.')
  const change = await account.compare(tx)
  if (change === 'same') return
  if (change === 'replacement' && !passwordGiven)
    throw invalid('current_password', `is required to replace a ${account.name}`)
  // A token that was stolen while money waits for its first destination must not be enough to take it.
  if (change === 'first' && user.role === 'creator' && !isConfirmed && (await hasEarned(tx, user.id)))
    throw invalid(
      'current_password',
      'is required once there are earnings, or a log-in of the last 10 minutes',
    )
  await account.add(tx, change)
}

async function hasEarned(tx: Tx, creatorId: string): Promise<boolean> {
  const { pending, released } = await creatorBalance(tx, creatorId)
  return pending + released > 0
}

function invalid(path: string, message: string): Refusal {
  return invalidFields([{ path, message }])
}
