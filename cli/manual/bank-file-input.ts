import { open } from 'node:fs/promises'
import {
  type BankFileColumns,
  type BankRow,
  readBankFile,
  UnreadableBankFile,
} from '../../server/processor/manual/bank-file.ts'
import { Failure, wrongUsage } from '../failures.ts'

/** `reference=Narration,amount=Txn Amount` → titles by column. Refuses (exit 2) other columns. */
function titlesOf(text: string | undefined, columns: readonly string[]): Map<string, string> {
  const pairs = (text ?? '').split(',').filter((part) => part.trim() !== '')
  return new Map(
    pairs.map((pair) => {
      const [, column = '', title = ''] = /^\s*([a-z_]+)\s*=\s*"?(.+?)"?\s*$/.exec(pair) ?? []
      if (columns.includes(column)) return [column, title]
      throw wrongUsage(`--columns names titles of ${columns.join(', ')}: reference=Narration,amount=Amount.`)
    }),
  )
}

/** Reads a bank's file while `work` takes its rows. What is wrong with the file is one sentence that names it. */
export async function withBankFile<T>(
  file: string,
  columns: Omit<BankFileColumns, 'titles'>,
  titles: string | undefined,
  work: (rows: AsyncIterable<BankRow>) => Promise<T>,
): Promise<T> {
  const named = { ...columns, titles: titlesOf(titles, [...columns.required, ...columns.optional]) }
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    throw new Failure(`${file}: ${error.code === 'ENOENT' ? 'There is no such file.' : error.message}`)
  })
  try {
    return await work(readBankFile(handle.createReadStream({ autoClose: false }), named))
  } catch (error) {
    const { message, syscall } = error as NodeJS.ErrnoException
    if (error instanceof UnreadableBankFile || syscall === 'read') throw new Failure(`${file}: ${message}`)
    throw error
  } finally {
    await handle.close()
  }
}
