import type { ComponentChildren } from 'preact'
import { type List, type Page as ListedPage, useList } from '../client.ts'
import { Link, useRoute } from '../router.tsx'
import { t } from '../text.ts'
import { Ask } from './ask.tsx'
import { type Field, Filters, field, inputOf, optionsOf } from './form.tsx'
import { Answered, Empty, Page, type PageProps } from './page.tsx'
import { Table, type TableProps } from './table.tsx'

const ROWS = 50

/** A filter by a field of the wire with these values. */
export const choice = (name: string, values: readonly string[]): Field =>
  field(`${name}?`, { type: 'select', options: [['', t('All')], ...optionsOf(values)] })

/** A list with filters, or their names on the wire, that stand in the address. `load` takes what they say, and `fixed`. */
export function useFiltered<Row extends { id: string }>(
  key: string,
  given: readonly (Field | string)[],
  load: (input: never) => Promise<ListedPage<Row>>,
  fixed?: object,
) {
  const filters = given.map((one) => (typeof one === 'string' ? field(one) : one))
  const input = inputOf(useRoute().query, filters)
  const list = useList(`${key} ${JSON.stringify({ ...fixed, ...input })}`, (cursor) =>
    load({ limit: ROWS, ...fixed, ...input, ...cursor } as never),
  )
  const isFiltered = Object.values(input).some((value) => value !== undefined)
  const isShown = (row: Row) => list.rows?.some(({ id }) => id === row.id)
  /** Shows a row that changed or is new; whether the filters let a new one through, the service knows. */
  const put = (row: Row) => (isFiltered && !isShown(row) ? void list.reload() : list.put(row))
  return { ...list, put, filters, isFiltered }
}

interface RowsProps<Row extends { id: string }> extends Omit<TableProps<Row>, 'rows' | 'columns'> {
  list: List<Row>
  /** Shown without rows. */
  empty?: ComponentChildren
  /** How rows are shown: as a table with these columns, or each by `card`. */
  columns?: TableProps<Row>['columns']
  card?: (row: Row) => ComponentChildren
}

/** The rows of a list, with "Show more". */
export function Rows<Row extends { id: string }>({ list, empty, columns, card, ...table }: RowsProps<Row>) {
  const { rows, showMore } = list
  const shown = (rows: Row[]) =>
    columns ? (
      <Table rows={rows} columns={columns} {...table} />
    ) : (
      rows.map((row) => <section key={row.id}>{card?.(row)}</section>)
    )
  return (
    <>
      <Answered of={{ ...list, data: rows }}>{(rows) => (rows.length > 0 ? shown(rows) : empty)}</Answered>
      {showMore && <Ask class="more" label={t('Show more')} onSubmit={showMore} />}
    </>
  )
}

interface ListPageProps<Row extends { id: string }>
  extends PageProps,
    Pick<RowsProps<Row>, 'columns' | 'card'> {
  list: ReturnType<typeof useFiltered<Row>>
  /** What there would be, and how it comes about. */
  empty: [title: string, hint: string]
}

/** A screen that is a list; `children` stand above it. */
export function ListPage<Row extends { id: string }>(props: ListPageProps<Row>) {
  const { list, empty, columns, card, children, ...page } = props
  const { filters, isFiltered } = list
  const shown = filters.filter(({ type }) => type !== 'hidden')
  const { path } = useRoute()
  const [title, hint] = isFiltered ? [t('Nothing fits these filters.')] : empty
  const nothing = <Empty title={title}>{hint}</Empty>
  return (
    <Page {...page}>
      {children}
      {shown.length > 0 && <Filters fields={shown} />}
      {isFiltered && <Link to={path}>{t('Remove all filters')}</Link>}
      <Rows label={page.title} list={list} columns={columns} card={card} empty={nothing} />
    </Page>
  )
}
