import { ReasonedError } from '@svc/internal-errors'

/**
 * What a {@link MetainfoError} is about; stable, for programs. Each code carries a finer `reason`.
 * - `E_BENCODE`: bytes are not canonical bencoding or exceed a bound.
 * - `E_METAINFO`: a `.torrent` or an info dictionary breaks BEP 52 or a bound.
 * - `E_MAGNET`: a magnet link cannot be used.
 * - `E_MERKLE`: hashes have the wrong length, lie outside the tree or fail verification.
 */
export type MetainfoErrorCode = 'E_BENCODE' | 'E_METAINFO' | 'E_MAGNET' | 'E_MERKLE'

/** The one error class of this package. */
export class MetainfoError extends ReasonedError<MetainfoErrorCode> {
  override readonly name = 'MetainfoError'
}
