import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

/** What lies below a folder, by path: `-> text` for a link, a small file's text, else its length, or `special`. */
export function treeOf(root: string, folder = ''): Record<string, string> {
  const tree: Record<string, string> = {}
  for (const name of readdirSync(join(root, folder)).sort()) {
    const at = folder === '' ? name : `${folder}/${name}`
    const stats = lstatSync(join(root, at))
    if (stats.isDirectory()) Object.assign(tree, treeOf(root, at))
    else if (stats.isSymbolicLink()) tree[at] = `-> ${readlinkSync(join(root, at))}`
    else if (!stats.isFile()) tree[at] = 'special'
    else tree[at] = stats.size < 100 ? readFileSync(join(root, at), 'utf8') : `${stats.size} bytes`
  }
  return tree
}
