export interface Area {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** A rectangle in fractions of the whole. */
export interface Tile<T> extends Area {
  readonly item: T
}

/**
 * Tiles with areas in proportion to the sizes, as square as they get: the squarified treemap of Bruls, Huizing and van Wijk
 * (2000). Items without a size get no tile. `aspect` is the width of the whole by its height.
 */
export function squarify<T>(items: readonly T[], size: (item: T) => number, aspect: number): Tile<T>[] {
  const left = items.filter((item) => size(item) > 0).sort((a, b) => size(b) - size(a))
  const total = left.reduce((sum, item) => sum + size(item), 0)
  const scaled = (item: T): number => (size(item) / total) * aspect
  const tiles: Tile<T>[] = []
  let area: Area = { x: 0, y: 0, width: aspect, height: 1 }
  for (let at = 0; at < left.length; ) {
    const side = Math.min(area.width, area.height)
    let end = at + 1
    let sum = scaled(left[at]!)
    let worst = worstOf(sum, scaled(left[at]!), scaled(left[at]!), side)
    for (; end < left.length; end++) {
      const next = scaled(left[end]!)
      const worse = worstOf(sum + next, scaled(left[at]!), next, side)
      if (worse > worst) break
      worst = worse
      sum += next
    }
    const row = left.slice(at, end)
    area = layRow(
      row.map((item) => ({ item, size: scaled(item) })),
      sum,
      area,
      tiles
    )
    at = end
  }
  return tiles.map(({ item, x, y, width, height }) => ({ item, x: x / aspect, y, width: width / aspect, height }))
}

/** The worst aspect ratio in a row of this sum along `side`. */
const worstOf = (sum: number, largest: number, smallest: number, side: number): number =>
  Math.max((side ** 2 * largest) / sum ** 2, sum ** 2 / (side ** 2 * smallest))

/** Lays a row along the shorter side. @returns the rest of the area */
function layRow<T>(
  row: readonly { readonly item: T; readonly size: number }[],
  sum: number,
  { x, y, width, height }: Area,
  tiles: Tile<T>[]
): Area {
  const isUpright = width >= height
  const thickness = sum / (isUpright ? height : width)
  let at = isUpright ? y : x
  for (const { item, size } of row) {
    const length = size / thickness
    tiles.push(
      isUpright
        ? { item, x, y: at, width: thickness, height: length }
        : { item, x: at, y, width: length, height: thickness }
    )
    at += length
  }
  return isUpright
    ? { x: x + thickness, y, width: width - thickness, height }
    : { x, y: y + thickness, width, height: height - thickness }
}
