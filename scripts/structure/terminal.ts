/** Files of the programs that reach a terminal on a way of their own, each with its reason. All others write to an `Output`. */
export const TERMINAL: Readonly<Record<string, string>> = {
  'packages/cli/bin/svc.cjs': 'says that Node is too old, before anything is loaded',
  'packages/cli/src/commands/exec.ts': "runs the user's program, whose output is its own",
  'packages/daemon/bin/svcd.cjs': 'says that Node is too old, before anything is loaded',
  'packages/daemon/src/log.ts': 'its lines are escaped, and written at once by pino',
  'packages/internal/terminal/src/output.ts': 'is the writer'
}
