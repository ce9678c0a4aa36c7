/**
 * Sources that parse JSON themselves, each with why that cannot hold up the event loop. Documents of strangers are read through
 * `@svc/internal-http` (bounded answers), `@svc/manifest`, `@svc/classify`, or a thread with a time limit. What has its own process, as
 * `svc` and the page have, holds up nobody else.
 */
export const JSON_PARSE: Readonly<Record<string, string>> = {
  // files that only svc writes
  'packages/cas/src/journal.ts': 'an entry of the store’s own journal',
  'packages/cas/src/store-owner.ts': 'the store’s own mark of its owner',
  'packages/daemon/src/app/runtime-file.ts': 'the file of the daemon that ran before',
  'packages/daemon/src/commands/tag.ts': 'an answer of the own daemon; a process of its own',
  'packages/daemon/src/log.ts': 'a line that the log wrote',
  'packages/internal/services/src/daemon-state.ts': 'the file of the daemon that runs; a process of its own',
  'packages/internal/state/src/move-marker.ts': 'the own mark of a move',
  'packages/internal/state/src/record.ts': 'a record of the state',
  'packages/internal/state/src/root-memory.ts': 'the own memory of roots',
  'packages/internal/state/src/usage.ts': 'the own record of uses, bounded',
  'packages/library/src/standing/known-places.ts': 'the own cache of disks',
  'packages/view/src/marker.ts': 'the own mark of a view, bounded, in a thread',
  'packages/view/src/standing/own-entries.ts': 'the own list of a view, bounded, in a thread',
  // documents of others
  'packages/classify/src/config.ts': 'after a scan that bounds its size and depth',
  'packages/classify/src/json-scan.ts': 'one string of a scanned document',
  'packages/catalog/src/digest-list.ts': 'one cell of a page, in a thread',
  'packages/internal/bridge/src/kept-address.ts': 'the own file of the page that ran before',
  'packages/internal/bridge/src/answer.ts': 'a request of the page, bounded; a process of its own',
  'packages/internal/http/src/json.ts': 'an answer whose size is bounded; long ones in a thread',
  'packages/internal/state/src/model-parts.ts': 'in the thread for documents',
  'packages/internal/state/src/shard-names.ts': 'in the thread for documents',
  'packages/internal/workers/src/texts.ts': 'what a thread has read',
  'packages/manifest/src/canonical.ts': 'bounded; long ones in the thread for documents',
  'packages/mirror/src/form.ts': 'a form whose size is bounded',
  'packages/publish/src/backup/format.ts': 'a line of a backup that the owner restores; a process of its own',
  'packages/publish/src/s3/multipart.ts': 'the own note of an upload',
  'packages/signature/src/json.ts': 'in the thread for signatures',
  'packages/signature/src/verify.ts': 'the owner’s trust root',
  'packages/view/src/adopt/cache-folder.ts': 'a small file of another tool, bounded'
}
