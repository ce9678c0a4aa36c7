/** Small files that go to the store together: few messages for many files, and little work behind one failure. */
const MAX_FILES = 64
const MAX_BYTES = 8 << 20

/**
 * Puts small files into groups; each other file is one of its own. `smallBytesOf` gives the size of a small file, and
 * undefined for another one. The order of the groups is that of their first files.
 */
export function groupSmall<File>(
  files: readonly File[],
  smallBytesOf: (file: File) => number | undefined
): readonly (readonly File[])[] {
  const groups: File[][] = []
  let open: File[] | undefined
  let openBytes = 0
  for (const file of files) {
    const sizeBytes = smallBytesOf(file)
    if (sizeBytes === undefined) groups.push([file])
    else {
      if (open === undefined || open.length === MAX_FILES || openBytes + sizeBytes > MAX_BYTES) {
        groups.push((open = []))
        openBytes = 0
      }
      open.push(file)
      openBytes += sizeBytes
    }
  }
  return groups
}
