import { summary, summaryInput } from '../../shared/schemas/summaries.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { periodOf } from '../platform/clock.ts'
import { creatorSummary, merchantSummary } from './summaries.service.ts'

export const summariesRouter = router({
  get: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/summary' },
    summary: 'How the caller stands',
    description:
      'For a creator clicks, sales, the balance of the journal and the next payout; for a merchant sales, the open billing cycle with its best offers and creators, what is owed and what credit there is. `from` and `to` choose which sales are counted; everything else is as of now.',
  })
    .input(summaryInput)
    .output(summary)
    .query(async ({ ctx: { platform, actor }, input }) => {
      const period = periodOf(input)
      return actor.role === 'merchant'
        ? merchantSummary(platform, actor.userId, period, input.top)
        : creatorSummary(platform, actor.userId, period)
    }),
})
