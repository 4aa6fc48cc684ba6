# Installs a file of a release in a fresh root, and uses it there as an unprivileged user.
#
#   install.sh KIND FOLDER FILE USER CONTROL CONFIG COMMAND...
#
# KIND is tarball, debian or image. FOLDER is empty. For an image, FILE is the folder with its files.
# COMMAND runs the node with the control socket CONTROL. Runs in a mount namespace of its own, so
# that nothing stays mounted.
set -eu
kind=$1 folder=$2 file=$3 user=$4 control=$5 config=$6
shift 6
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
root=$folder/root
mkdir "$folder/upper"

if [ "$kind" = image ]; then
    root=$file
else
    # This system, to which only the fresh root writes.
    mount -t tmpfs none "$folder/upper"
    mkdir "$root" "$folder/upper/files" "$folder/upper/work"
    mount -t overlay none "$root" \
        -o "lowerdir=/,upperdir=$folder/upper/files,workdir=$folder/upper/work"
    mount -t tmpfs -o mode=1777 none "$root/tmp"
    mount -t tmpfs none "$root/run"
    mount --bind /dev "$root/dev"
    cp "$file" "$root/run/"
    mkdir -p "$root$(dirname "$control")"
    chown "$user" "$root$(dirname "$control")"
fi
file=/run/$(basename "$file")

case $kind in
tarball) chroot "$root" tar -xzf "$file" -C /usr/local --strip-components=1 ;;
debian) chroot "$root" dpkg --install "$file" ;;
esac

as_user() {
    chroot --userspec="$user" "$root" "$@"
}
as_user strowger --version
as_user strowger-pfcp --version
[ -z "$config" ] || as_user strowger check "$config"

# In place of the subshell, so that the signal reaches the node.
(exec chroot --userspec="$user" "$root" "$@") &
node=$!
tries=0
until as_user strowger tree --control "$control"; do
    tries=$((tries + 1))
    if [ $tries -ge 60 ] || ! kill -0 $node; then
        echo "no answer of the node at $control" >&2
        exit 1
    fi
    sleep 1
done
kill -TERM $node
wait $node

if [ "$kind" = debian ]; then
    chroot "$root" dpkg --purge strowger
    for left in /usr/bin/strowger /usr/bin/strowger-pfcp /etc/strowger; do
        if [ -e "$root$left" ]; then
            echo "$left is left after the package was purged" >&2
            exit 1
        fi
    done
fi
