/**
 * URL of the module whose default export creates a hasher of leaf layers: `(options, sizeBytes) => {update, digest, further}`. A
 * store that hashes in worker threads can load further hashers by module URL, so that the leaf layer and the SHA-256
 * are computed in one pass over the bytes.
 */
export const leafHasherUrl: string = new URL(
  `./leaf-hasher${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url
).href
