import { type MerchantAccount, merchantAccount } from '../billing/billing.service.ts'
import { type CreatorBalance, creatorBalance } from '../ledger/ledger.service.ts'
import { refreshMerchantName } from '../offers/offers.service.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { entities } from '../platform/database/entities.ts'
import type { Platform } from '../platform/platform.ts'
import { checkIban } from './iban.rule.ts'
import { isRightPassword } from './password-attempts.service.ts'
import {
  addDestination,
  destinationChange,
  type OwnDestinations,
  ownDestinations,
  type PayoutAccount,
} from './payout-destinations.service.ts'
import { lockActiveUser, type UserRecord, userNotFound, userRecordOf } from './users.service.ts'
import { findUserById, type UserRow } from './users.store.ts'

/** An account as its owner sees it. */
export interface Profile {
  user: UserRecord
  /** Creators only, like the balance. */
  destinations: OwnDestinations | null
  balance: CreatorBalance | null
  /** Merchants only. */
  account: MerchantAccount | null
}

/** Refuses with `not_found`. */
export async function profileOf(platform: Platform, userId: string): Promise<Profile> {
  return readProfile(platform, platform.database.reader, userId)
}

async function readProfile(platform: Platform, db: Queries, userId: string): Promise<Profile> {
  const row = await userRow(db, userId)
  const user = userRecordOf(row)
  const profile: Profile = { user, destinations: null, balance: null, account: null }
  if (user.role === 'merchant') return { ...profile, account: await merchantAccount(db, userId) }
  if (user.role !== 'creator') return profile
  return {
    ...profile,
    destinations: await ownDestinations(platform, db, userId),
    balance: await creatorBalance(db, userId),
  }
}

export interface ProfileChange {
  displayName?: string
  destination?: { iban: string; account_title: string }
  currentPassword?: string
  /** The client's network address: wrong passwords are counted by it. */
  address?: string
}

/**
 * Changes what is given. A creator's first payout destination counts at once; replacing it needs the password, raises
 * a flag and takes effect after 24 hours. Refuses with `validation_failed` and `invalid_credentials`.
 */
export async function updateProfile(
  platform: Platform,
  userId: string,
  change: ProfileChange,
): Promise<Profile> {
  const row = await userRow(platform.database.reader, userId)
  const account = change.destination && checkedAccount(row, change.destination)
  const passwordGiven = account ? await checkPassword(platform, row, account, change) : false
  return platform.database.transaction(async (tx) => {
    if (change.displayName !== undefined && change.displayName !== row.display_name) {
      const { em, User } = await entities(tx)
      const user = await em.findOneOrFail(User, userId)
      user.display_name = change.displayName
      await em.flush()
      if (row.role === 'merchant') await refreshMerchantName(platform, tx, userId)
    }
    if (account) await moveDestination(platform, tx, row, account, passwordGiven)
    return readProfile(platform, tx, userId)
  })
}

async function userRow(db: Queries, userId: string): Promise<UserRow> {
  const row = await findUserById(db, userId)
  if (row) return row
  throw userNotFound()
}

function checkedAccount(user: UserRow, given: { iban: string; account_title: string }): PayoutAccount {
  if (user.role !== 'creator') throw invalid('payout_destination', 'is for creators only')
  const check = checkIban(given.iban)
  if (!check.ok) throw invalid('payout_destination.iban', check.message)
  return { iban: check.iban, account_title: given.account_title }
}

/** Whether a password was given. Refuses a wrong one, and a missing one where it is needed. */
async function checkPassword(
  platform: Platform,
  user: UserRow,
  account: PayoutAccount,
  { currentPassword: password, address = '' }: Pick<ProfileChange, 'currentPassword' | 'address'>,
): Promise<boolean> {
  if (password === undefined) {
    const change = await destinationChange(platform, platform.database.reader, user.id, account)
    if (change === 'replacement') throw passwordNeeded()
    return false
  }
  if (await isRightPassword(platform, { email: user.email, user, password, address })) return true
  throw new Refusal('invalid_credentials', 'The current password is wrong.')
}

async function moveDestination(
  platform: Platform,
  tx: Tx,
  user: UserRow,
  account: PayoutAccount,
  passwordGiven: boolean,
): Promise<void> {
  // The password was compared before the transaction.
  if (!(await lockActiveUser(tx, user))) {
    throw new Refusal('conflict', 'The account changed meanwhile. Log in again.')
  }
  const change = await destinationChange(platform, tx, user.id, account)
  if (change === 'same') return
  if (change === 'replacement' && !passwordGiven) throw passwordNeeded()
  await addDestination(platform, tx, user.id, account)
}

function passwordNeeded(): Refusal {
  return invalid('current_password', 'is required to replace a payout destination')
}

function invalid(path: string, message: string): Refusal {
  return invalidFields([{ path, message }])
}
