/// <reference path="./untyped.d.ts" />

import type { WebTorrentConstructor } from './client.ts'

/** Loaded when the first torrent is joined: webtorrent costs 50 MB of memory and half a second. */
export async function loadWebTorrent(): Promise<WebTorrentConstructor> {
  return (await import('webtorrent')).default
}
