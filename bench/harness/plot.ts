/** One curve of `[x, y]` points; all values positive, because the axes are logarithmic. */
export interface Series {
  readonly name: string
  readonly points: readonly (readonly [number, number])[]
}

/** A log-log plot, in which linear growth has the slope of the dashed lines. */
export interface Plot {
  readonly title: string
  readonly x: string
  readonly y: string
  readonly series: readonly Series[]
}

const WIDTH = 720
const HEIGHT = 400
const LEFT = 70
const RIGHT = 170
const TOP = 40
const BOTTOM = 50
const COLOURS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#17becf']

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const shown = (value: number): string =>
  value >= 1 ? value.toLocaleString('en-US', { maximumSignificantDigits: 3 }) : String(Number(value.toPrecision(3)))

/** The range of decades that covers the values; at least one decade. */
function decades(values: readonly number[]): readonly [number, number] {
  const low = Math.floor(Math.log10(Math.min(...values)))
  const high = Math.ceil(Math.log10(Math.max(...values)))
  return [low, Math.max(high, low + 1)]
}

/** Renders a plot as a self-contained SVG document. @throws RangeError for values that are not positive */
export function plotSvg({ title, x, y, series }: Plot): string {
  const points = series.flatMap((each) => each.points)
  if (points.length === 0 || points.some(([a, b]) => !(a > 0 && b > 0 && Number.isFinite(a + b))))
    throw new RangeError(`${title}: values must be positive`)
  const [xLow, xHigh] = decades(points.map(([a]) => a))
  const [yLow, yHigh] = decades(points.map(([, b]) => b))
  const right = WIDTH - RIGHT
  const bottom = HEIGHT - BOTTOM
  const atX = (value: number): number => LEFT + ((Math.log10(value) - xLow) / (xHigh - xLow)) * (right - LEFT)
  const atY = (value: number): number => bottom - ((Math.log10(value) - yLow) / (yHigh - yLow)) * (bottom - TOP)
  const at = ([a, b]: readonly [number, number]): string => `${atX(a).toFixed(1)},${atY(b).toFixed(1)}`
  const text = (left: number, top: number, words: string, more = ''): string =>
    `<text x="${left.toFixed(1)}" y="${top.toFixed(1)}" ${more}>${escaped(words)}</text>`

  const parts: string[] = []
  for (let power = xLow; power <= xHigh; power++) {
    const left = atX(10 ** power)
    parts.push(`<path d="M${left.toFixed(1)} ${TOP}V${bottom}" stroke="#ddd"/>`)
    parts.push(text(left, bottom + 18, shown(10 ** power), 'text-anchor="middle"'))
  }
  for (let power = yLow; power <= yHigh; power++) {
    const top = atY(10 ** power)
    parts.push(`<path d="M${LEFT} ${top.toFixed(1)}H${right}" stroke="#ddd"/>`)
    parts.push(text(LEFT - 8, top + 4, shown(10 ** power), 'text-anchor="end"'))
  }
  for (const [i, { name, points }] of series.entries()) {
    const colour = COLOURS[i % COLOURS.length]!
    const sorted = [...points].sort(([a], [b]) => a - b)
    const [lastX, lastY] = sorted.at(-1)!
    // the linear reference through the last point, clipped to the plot
    const firstX = Math.max(10 ** xLow, (lastX * 10 ** yLow) / lastY)
    const linear = `${at([firstX, (lastY * firstX) / lastX])} ${at([lastX, lastY])}`
    parts.push(`<polyline points="${linear}" fill="none" stroke="${colour}" stroke-dasharray="2 5" opacity="0.6"/>`)
    parts.push(`<polyline points="${sorted.map(at).join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`)
    for (const point of sorted) {
      const [left, top] = at(point).split(',')
      parts.push(`<circle cx="${left}" cy="${top}" r="3" fill="${colour}"/>`)
    }
    parts.push(text(right + 10, TOP + 14 + i * 18, name, `fill="${colour}"`))
    parts.push(text(atX(lastX), atY(lastY) - 8, shown(lastY), `fill="${colour}" text-anchor="end" font-size="10"`))
  }
  parts.push(text(right + 10, TOP + 14 + series.length * 18, 'dotted: linear', 'fill="#777"'))
  parts.push(text(LEFT, 22, title, 'font-size="15" font-weight="bold"'))
  parts.push(text((LEFT + right) / 2, HEIGHT - 10, x, 'text-anchor="middle"'))
  parts.push(text(LEFT, TOP - 6, y, 'fill="#555"'))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    ...parts,
    '</svg>',
    ''
  ].join('\n')
}

/**
 * The exponent of growth between the two largest sizes: 1 is linear, 2 quadratic. At smaller sizes fixed costs would hide it.
 * @throws RangeError with fewer than two points
 */
export function growthOf({ points }: Series): number {
  const [[x2, y2], [x1, y1]] = [...points].sort(([a], [b]) => b - a) as [
    readonly [number, number],
    readonly [number, number]
  ]
  if (points.length < 2) throw new RangeError('the growth rate needs two points')
  return Math.log(y2 / y1) / Math.log(x2 / x1)
}
