import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { theme } from '../state.ts'
import { count, dayAndMonth, fieldOf, language, t } from '../text.ts'
import { Card, Table } from './page.tsx'

/** A QR code of the text. */
export function Qr({ text, label }: { text: string; label: string }) {
  const [image, setImage] = useState('')
  useEffect(() => {
    void import('uqr').then(({ renderSVG }) => setImage(renderSVG(text, { border: 2 })))
  }, [text])
  return image && <img class="qr" alt={label} src={`data:image/svg+xml,${encodeURIComponent(image)}`} />
}

interface PlotProps<Row> {
  title: string
  /** By day, in order. */
  rows: readonly Row[]
  /** The fields to draw. */
  lines: readonly (keyof Row & string)[]
}

const PLOT_HEIGHT = 220
const INKS = ['--accent', '--plot-2']

/** Lines by day; for screen readers, a table. */
export function Plot<Row extends { key: string }>({ title, rows, lines }: PlotProps<Row>) {
  const box = useRef<HTMLDivElement>(null)
  const looks = `${language.use()} ${theme.use()}`
  useEffect(() => {
    const drawing = import('uplot').then(({ default: UPlot }) => {
      const element = box.current
      if (!element) return
      // A canvas knows no variables: the browser turns them into colors.
      const color = (name = '') => {
        element.style.color = `var(${name})`
        return getComputedStyle(element).color
      }
      const axis = { stroke: color('--quiet'), grid: { stroke: color('--line') }, ticks: { show: false } }
      const size = () => ({ width: element.clientWidth, height: PLOT_HEIGHT })
      const series = lines.map((name, index) => ({
        label: fieldOf(name).label,
        stroke: color(INKS[index]),
        width: 2,
        points: { show: rows.length < 3 },
      }))
      const plot = new UPlot(
        {
          ...size(),
          tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'UTC'),
          axes: [
            { ...axis, space: 70, values: (_plot, ticks) => ticks.map(dayAndMonth) },
            { ...axis, size: 70, values: (_plot, ticks) => ticks.map(count) },
          ],
          // Without the pointer on it, the last day.
          hooks: {
            setLegend: [({ legend, setLegend }) => legend.idx ?? setLegend({ idx: rows.length - 1 }, false)],
          },
          series: [{ label: t('Day'), value: (_plot, second) => dayAndMonth(second) }, ...series],
        },
        [
          rows.map(({ key }) => Date.parse(key) / 1000),
          ...lines.map((name) => rows.map((row) => Number(row[name]))),
        ],
        element,
      )
      element.style.color = ''
      const resized = new ResizeObserver(() => plot.setSize(size()))
      resized.observe(element)
      return () => {
        resized.disconnect()
        plot.destroy()
      }
    })
    return () => void drawing.then((end) => end?.())
  }, [rows, lines, looks])
  const cells = { day: ({ key }: Row) => key }
  return (
    <Card title={title}>
      <div ref={box} class="plot" dir="ltr" aria-hidden="true" />
      <div class="hidden">
        <Table label={title} rows={rows} columns={['day', ...lines]} cells={cells} />
      </div>
    </Card>
  )
}

interface StepsProps {
  steps: [title: string, ...content: ComponentChildren[]][]
  /** The index of the current step, whose content is shown. */
  at: number
  /** Shows the content of every step. */
  all?: boolean
}

/** What is done and what comes next. */
export function Steps({ steps, at, all }: StepsProps) {
  return (
    <ol class="steps">
      {steps.map(([title, ...content], index) => (
        <li
          key={`${index} ${title}`}
          class={index < at ? 'done' : index === at ? 'current' : 'later'}
          aria-current={index === at ? 'step' : undefined}
        >
          <strong>
            {title} {index < at && <span class="hidden">{t('Done')}</span>}
          </strong>
          {(all || index === at) && content.map((part) => <div>{part}</div>)}
        </li>
      ))}
    </ol>
  )
}
