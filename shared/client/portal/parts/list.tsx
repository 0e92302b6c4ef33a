import type { ComponentChildren } from 'preact'
import { useQuery, useRole } from '../client.ts'
import { route } from '../state.ts'
import { t } from '../text.ts'
import { Ask, Filters, field, inputOf } from './form.tsx'
import { Answered, type Cells, Empty, Page, type PageProps, Table } from './page.tsx'

const ROWS = 50

/** What a list is: its texts in English. */
export interface ListOf {
  title: string
  lead?: string
  /** Without rows: what there would be, and how it comes about. */
  empty: readonly string[]
  /** Fields of the wire, with the values that each offers, if it is one to choose from. They stand in the address. */
  filters?: Record<string, readonly string[]>
  /** Fields of the wire; `merchant: creator` is the column `creator`, for merchants only. */
  columns?: readonly string[]
}

interface PageOf<Row> {
  items: Row[]
  next_cursor: string | null
}

/**
 * A list, page by page. `load` takes what its filters say, `fixed`, and a cursor. Loading it again puts the first page in place of its
 * rows, and keeps the rows after them.
 */
export function useList<Row extends { id: string }>(
  of: ListOf,
  load: (input: never) => Promise<PageOf<Row>>,
  fixed?: object,
) {
  const filters = Object.entries(of.filters ?? {}).map(([name, options]) =>
    field(`${name}?`, options.length > 0 ? { options } : {}),
  )
  const input = { ...fixed, ...inputOf(route.use().query, filters) }
  const loadFrom = (cursor: { cursor?: string }) => load({ limit: ROWS, ...input, ...cursor } as never)
  const query = useQuery<PageOf<Row>>(`${of.title} ${JSON.stringify(input)}`, async (former) => {
    const page = await loadFrom({})
    const ids = new Set(page.items.map(({ id }) => id))
    const rest = former?.items.slice(former.items.findLastIndex(({ id }) => ids.has(id)) + 1) ?? []
    const isPart = page.next_cursor !== null && ids.size > 0 && rest.length < (former?.items.length ?? 0)
    return isPart && rest.length > 0
      ? { items: [...page.items, ...rest], next_cursor: former?.next_cursor ?? null }
      : page
  })
  const { data, update } = query
  const isFiltered = filters.some(({ name }) => input[name as keyof typeof input] !== undefined)
  /** Puts a row in the place of the one with its id, or at the top; whether filters let a new one through, the service knows. */
  const put = (row: Row) =>
    update(({ items, ...rest }) => {
      const isShown = items.some(({ id }) => id === row.id)
      if (isShown) return { ...rest, items: items.map((one) => (one.id === row.id ? row : one)) }
      if (isFiltered) void query.reload()
      return { ...rest, items: isFiltered ? items : [row, ...items] }
    })
  const cursor = data?.next_cursor
  const showMore = async () => {
    const page = await loadFrom({ cursor: cursor ?? '' })
    update(({ items }) => ({ items: [...items, ...page.items], next_cursor: page.next_cursor }))
  }
  return { ...query, of, filters, isFiltered, put, showMore: cursor ? showMore : undefined }
}

interface RowsProps<Row extends { id: string }> {
  list: ReturnType<typeof useList<Row>>
  cells?: Cells<Row>
  /** In place of columns: how a row is shown. */
  card?: (row: Row) => ComponentChildren
}

/** The rows of a list, with "Show more". */
export function Rows<Row extends { id: string }>({ list, cells, card }: RowsProps<Row>) {
  const { of, isFiltered, showMore } = list
  const role = useRole()
  const columns = of.columns?.flatMap((column) => {
    const [name = '', whose = role] = column.split(': ').reverse()
    return whose === role ? [name] : []
  })
  const [title = '', hint = ''] = isFiltered
    ? [t('Nothing fits these filters.')]
    : of.empty.map((text) => t(text))
  const shown = (rows: Row[]) => {
    if (rows.length === 0) return <Empty title={title}>{hint}</Empty>
    if (columns) return <Table label={t(of.title)} rows={rows} columns={columns} cells={cells} />
    return rows.map((row) => <section key={row.id}>{card?.(row)}</section>)
  }
  return (
    <>
      <Answered of={list}>{({ items }) => shown(items)}</Answered>
      {showMore && <Ask class="more" label={t('Show more')} call={showMore} />}
    </>
  )
}

/** A screen that is a list; `children` stand above it. */
export function ListPage<Row extends { id: string }>(props: RowsProps<Row> & Partial<PageProps>) {
  const { list, children, lead = t(list.of.lead ?? ''), actions } = props
  const shown = list.filters.filter(({ type }) => type !== 'hidden')
  return (
    <Page title={t(list.of.title)} lead={lead} actions={actions}>
      {children}
      {shown.length > 0 && <Filters fields={shown} />}
      {list.isFiltered && <a href={location.pathname}>{t('Remove all filters')}</a>}
      <Rows {...props} />
    </Page>
  )
}
