import { useEffect, useRef, useState } from 'preact/hooks'
import { count, dayAndMonth, t, useLanguage } from '../text.ts'
import { useTheme } from '../theme.ts'
import { Table } from './table.tsx'

/** A QR code of the text. */
export function Qr({ text, label }: { text: string; label: string }) {
  const [code, setCode] = useState<{ size: number; path: string } | null>(null)
  useEffect(() => {
    void import('uqr').then(({ encode }) => {
      const { size, data } = encode(text, { border: 2 })
      const path = data
        .flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : [])))
        .join('')
      setCode({ size, path })
    })
  }, [text])
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${code?.size ?? 1} ${code?.size ?? 1}`}>
      <path d={code?.path ?? ''} />
    </svg>
  )
}

interface PlotProps {
  label: string
  /** Dates such as `2026-11-20`, in order. */
  days: string[]
  lines: { name: string; values: number[] }[]
}

const PLOT_HEIGHT = 220
const INKS = ['--accent', '--plot-2']

/** Lines by day; for screen readers, a table. */
export function Plot({ label, days, lines }: PlotProps) {
  const box = useRef<HTMLDivElement>(null)
  const language = useLanguage()
  const theme = useTheme()
  useEffect(() => {
    let isLeft = false
    let end = () => {}
    void import('uplot').then(({ default: UPlot }) => {
      const element = box.current
      if (isLeft || !element) return
      // A canvas knows no variables: the browser turns them into colors.
      const color = (name: string) => {
        element.style.color = `var(${name})`
        return getComputedStyle(element).color
      }
      const axis = { stroke: color('--quiet'), grid: { stroke: color('--line') }, ticks: { show: false } }
      const plot = new UPlot(
        {
          width: element.clientWidth,
          height: PLOT_HEIGHT,
          tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'UTC'),
          axes: [
            { ...axis, space: 70, values: (_plot, ticks) => ticks.map(dayAndMonth) },
            { ...axis, size: 70, values: (_plot, ticks) => ticks.map(count) },
          ],
          // Without the pointer on it, the last day.
          hooks: {
            setLegend: [({ legend, setLegend }) => legend.idx ?? setLegend({ idx: days.length - 1 }, false)],
          },
          series: [
            { label: t('Day'), value: (_plot, second) => dayAndMonth(second) },
            ...lines.map(({ name }, index) => ({
              label: name,
              stroke: color(INKS[index % INKS.length] ?? ''),
              width: 2,
              points: { show: days.length < 3 },
            })),
          ],
        },
        [days.map((day) => Date.parse(day) / 1000), ...lines.map(({ values }) => values)],
        element,
      )
      element.style.color = ''
      const resized = new ResizeObserver(() =>
        plot.setSize({ width: element.clientWidth, height: PLOT_HEIGHT }),
      )
      resized.observe(element)
      end = () => {
        resized.disconnect()
        plot.destroy()
      }
    })
    return () => {
      isLeft = true
      end()
    }
  }, [days, lines, language, theme])
  return (
    <figure class="plot">
      <div ref={box} dir="ltr" aria-hidden="true" />
      <figcaption class="hidden">
        <Table
          label={label}
          rows={days.map((id, index) => ({ id, index }))}
          columns={[
            { head: t('Day'), cell: ({ id }) => id },
            ...lines.map(({ name, values }) => ({
              head: name,
              cell: ({ index }: { index: number }) => count(values[index] ?? 0),
            })),
          ]}
        />
      </figcaption>
    </figure>
  )
}
