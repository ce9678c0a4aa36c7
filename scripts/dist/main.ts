// Makes what is released: `pnpm dist [--out FOLDER] [--platform NAME]… [--tree FOLDER]`, after a build.
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { DEBIAN, product } from './product.ts'
import { release } from './release.ts'
import { fetchRuntime, PLATFORMS, type Platform } from './runtimes.ts'

const root = resolve(import.meta.dirname, '../..')
const cache = join(root, 'node_modules/.cache/svc-dist')

const { values } = parseArgs({
  // pnpm hands its own dashes on.
  args: process.argv.slice(2).filter((word) => word !== '--'),
  options: {
    /** Where the files go. */
    out: { type: 'string', default: join(root, 'dist') },
    /** Default: all of them. `this` is the one that this runs on. */
    platform: { type: 'string', multiple: true },
    /** Instead of packing, lays out what goes below /usr. */
    tree: { type: 'string' }
  }
})

const here = `${process.platform}-${process.arch}`
const platforms = (values.platform ?? PLATFORMS).map((name): Platform => {
  const platform = PLATFORMS.find((each) => each === (name === 'this' ? here : name))
  if (platform === undefined) throw new Error(`${name} is none of ${PLATFORMS.join(', ')}`)
  return platform
})
const runtimeOf = (platform: Platform) => fetchRuntime(platform, cache)

if (values.tree === undefined) release({ root, out: resolve(values.out), platforms, runtimeOf, say: console.log })
else {
  const [platform, ...more] = platforms
  if (platform === undefined || more.length > 0) throw new Error('--tree is for one platform')
  product(root, runtimeOf(platform), DEBIAN).writeTo(resolve(values.tree))
}
