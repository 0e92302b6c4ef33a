import { lastResolvedFlag, openFlagAbout, raiseFlag } from '../flags/flags.service.ts'
import type { Platform } from '../platform/platform.ts'
import { wasSentWith } from '../processor/attempts.service.ts'
import type { Processor } from '../processor/processor.ts'
import { destinationsInForce, type PayoutAccount } from '../users/sealed-accounts.service.ts'
import { isSameTitle } from './account-title.rule.ts'
import { type PayoutRow, paidPayoutIds } from './payouts.store.ts'

const KIND = 'account_title_differs'

/**
 * Whether a payout may go to its account. `differs`: the bank names another holder, and a person has not accepted that.
 * `replaced`: so it is, and the creator has another destination by now, to which a new attempt can go.
 */
export type TitleVerdict =
  | { kind: 'accepted' }
  | { kind: 'differs' }
  | { kind: 'replaced' }
  | { kind: 'unavailable'; detail: string }

/**
 * Compares the title that the creator gave with the bank's, before the first payout to a destination. A difference is flagged, and the
 * payout waits until a person resolves the flag. Processors that cannot be asked accept every title.
 */
export async function checkAccountTitle(
  platform: Platform,
  processor: Processor,
  payout: PayoutRow,
  destination: PayoutAccount & { id: string },
): Promise<TitleVerdict> {
  if (!processor.accountTitle) return { kind: 'accepted' }
  const { reader } = platform.database
  const request = { destination_id: destination.id }
  const paid = await paidPayoutIds(reader, payout.creator_id)
  if (await wasSentWith(platform.keys, reader, 'payout', request, paid)) return { kind: 'accepted' }
  const isAboutIt = (flag: { evidence: string } | undefined) =>
    flag !== undefined && JSON.parse(flag.evidence).destination_id === destination.id
  if (isAboutIt(await lastResolvedFlag(reader, KIND, payout.id))) return { kind: 'accepted' }
  const subject = { kind: KIND, subjectType: 'payout', subjectId: payout.id } as const
  if (!isAboutIt(await openFlagAbout(reader, subject))) {
    const found = await processor.accountTitle(destination.iban)
    if (found.kind === 'unavailable') return found
    if (isSameTitle(found.title, destination.account_title)) return { kind: 'accepted' }
    await platform.database.transaction((tx) =>
      raiseFlag(platform, tx, {
        ...subject,
        summary:
          "The bank's title of the payout account is not the one that the creator gave. The payout waits until this flag is resolved, or the creator gives another account.",
        evidence: {
          ...request,
          creator_id: payout.creator_id,
          given_title: destination.account_title,
          bank_title: found.title,
          iban_last4: destination.iban.slice(-4),
        },
      }),
    )
  }
  const inForce = await destinationsInForce(reader, [payout.creator_id], platform.clock.now())
  return { kind: inForce.get(payout.creator_id)?.id === destination.id ? 'differs' : 'replaced' }
}
