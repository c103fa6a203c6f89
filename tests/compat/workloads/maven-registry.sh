# A library with its plugins and dependencies, compiled and packed.
mkdir -p src/main/java/a
cat > pom.xml <<'EOF'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>a</groupId><artifactId>a</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
  </properties>
</project>
EOF
echo 'package a; public class A { }' > src/main/java/a/A.java
mvn --batch-mode --quiet package
test -f target/a-1.jar
