import type { Database, Tx } from '../../platform/database/database.ts'

/** The error that `work` ends with; `null` when it succeeds. */
export const rejectionOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  )

/** The message of the error that `work` ends with; empty when it succeeds. */
export async function messageOf(work: Promise<unknown>): Promise<string> {
  const error = await rejectionOf(work)
  return error instanceof Error ? error.message : String(error ?? '')
}

/** What the database says is wrong in the error that `work` ends with. */
export async function faultKind(
  { faultOf }: Pick<Database, 'faultOf'>,
  work: Promise<unknown>,
): Promise<string | undefined> {
  return faultOf(await rejectionOf(work))?.kind
}

/** The same for a transaction; without `work` for an empty one. */
export const transactionFault = (
  database: Pick<Database, 'faultOf' | 'transaction'>,
  work: (tx: Tx) => Promise<unknown> = async () => {},
): Promise<string | undefined> => faultKind(database, database.transaction(work))
