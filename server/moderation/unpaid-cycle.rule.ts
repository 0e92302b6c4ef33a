const DAY_MS = 86_400_000

export interface UnpaidCycleFacts {
  /** Epoch ms, like every time here. */
  closedAt: number
  /** When a person last resolved a flag about it; `null` for never. */
  resolvedAt: number | null
  now: number
  /** How long a closed cycle may wait for its payment, and a person who has looked for their effort to show. */
  graceDays: number
}

/** Whether a closed cycle has waited too long for its payment. */
export function isOverdue({ closedAt, resolvedAt, now, graceDays }: UnpaidCycleFacts): boolean {
  return now - Math.max(closedAt, resolvedAt ?? 0) >= graceDays * DAY_MS
}
