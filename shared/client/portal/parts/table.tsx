import { Component, type ComponentChildren } from 'preact'
import { useLanguage } from '../text.ts'
import { fieldOf, type Kind } from '../words.ts'
import { Value } from './values.tsx'

export interface Column<Row> {
  head: string
  cell: (row: Row) => ComponentChildren
  /** For amounts and counts. */
  end?: boolean
}

export interface TableProps<Row> {
  /** What the rows are, for screen readers. */
  label: string
  rows: readonly Row[]
  /** Each, or its field on the wire. */
  columns: readonly (Column<Row> | (keyof Row & string))[]
  rowKey?: (row: Row) => string
}

/** A table; on narrow screens, each row is a card. */
export function Table<Row extends object>({ label, rows, rowKey = idOf, ...given }: TableProps<Row>) {
  const columns = given.columns.map((column) => (typeof column === 'string' ? columnOf<Row>(column) : column))
  return (
    <table class="table" aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ head, end }) => (
            <th key={head} scope="col" class={end ? 'end' : ''}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody key={useLanguage()}>
        {rows.map((row) => (
          <TableRow key={rowKey(row)} row={row} columns={columns} />
        ))}
      </tbody>
    </table>
  )
}

/** Rendered again only when its row is another object, since lists are long: cells may show nothing but their row. */
class TableRow<Row> extends Component<{ row: Row; columns: readonly Column<Row>[] }> {
  override shouldComponentUpdate(next: { row: Row }) {
    return next.row !== this.props.row
  }
  override render() {
    const { row, columns } = this.props
    const cells = columns.map(({ head, cell, end }) => (
      <td key={head} data-head={head} class={end ? 'end' : ''}>
        {cell(row)}
      </td>
    ))
    return <tr>{cells}</tr>
  }
}

const ENDS: readonly Kind[] = ['money', 'percent', 'count']

function columnOf<Row extends object>(name: string): Column<Row> {
  const { label, kind } = fieldOf(name)
  return { head: label, end: ENDS.includes(kind), cell: (row) => <Value of={row} name={name} /> }
}

const idOf = (row: unknown) => (row as { id: string }).id
