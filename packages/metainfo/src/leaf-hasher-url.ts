/**
 * URL of the module whose default export makes a hasher of leaf layers: `(options, sizeBytes) => {update, digest}`.
 * For stores that hash in worker threads and take further hashes by module URL, so that the leaf layer is made in the
 * same pass over the bytes as the SHA-256.
 */
export const leafHasherUrl: string = new URL(
  `./leaf-hasher${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url
).href
